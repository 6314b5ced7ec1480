"""Planted probe reports: one probe per answer, and one that did not run."""

from dataclasses import asdict
from math import nan

from heedful.evaluation.probe import probes
from heedful.evaluation.probe_report import ProbeOutcome, ProbeReport
from heedful.evaluation.probes import Finding, ProbeResult
from heedful.statistics.quantity import Quantity

CHANGE = Finding("Change of the output, shuffled", Quantity(0.4, 0.3, 0.5), Quantity(0.0), "no change")
LOSS = Finding("Change of the output, equal", Quantity(-0.1), Quantity(0.1, 0.0, 0.2), "a guess", "IMDB 0.437")
TAU = Finding("Kendall's τ", Quantity(0.2, 0.1, 0.3), published="SST 0.351")
LOST = Finding("Share of texts", Quantity(nan))
RESULTS = {
    "permuted": ProbeResult((CHANGE, LOSS, TAU, LOST), "yes", "It depends on attention."),
    "head-removal": ProbeResult((), "unknown", "The texts do not decide."),
    "agreement": ProbeResult((TAU,), "partly", "Attention ranks words somewhat."),
    "adversarial": ProbeResult((), "no", "Other attention gives the same output."),
    "trained-adversary": ProbeResult((), "yes", "No other model was found."),
}
REFUSED = "deceived"
REFUSAL = "This probe trains models; give texts with labels."


def planted_probes(names=(*RESULTS, REFUSED), **changes):
    """A report of these probes, in the order of the catalogue."""
    outcomes = []
    for name, kind in probes().items():
        if name in names:
            refusal = REFUSAL if name == REFUSED else ""
            outcomes.append(ProbeOutcome(kind(), asdict(kind()), RESULTS.get(name), refusal))
    about = {"description": "a tiny model", "dataset": "planted (test)", "n_texts": 1200, "notes": ("All planted.",)}
    return ProbeReport("f00d", unit="word", seed=3, outcomes=tuple(outcomes), **{**about, **changes})
