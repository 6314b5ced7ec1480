"""What a user prints is short: at most 300 characters, however long the text is."""

import heedful
from heedful.datasets import Example
from heedful.experiments.claim import Claim
from heedful.experiments.outcome import Outcome
from tests.families import build
from tests.render.probes.planted_reports import TAU, planted_probes

LONG = ". ".join(["the film was good and the plot was bad but very bright"] * 20)


def values(tiny):
    """One of each public value, with the values that it holds."""
    comparison = heedful.compare(tiny, LONG)
    report = heedful.trust(tiny, [LONG, "a good film", "not a dull story"], metrics=["deletion", "gini"])
    claim = Claim("what is claimed " * 30, "published " * 30, "ours " * 30, "differs", "why " * 60)
    yield from (comparison, *comparison.explanations, comparison.explanations[3].to("sentence"), comparison.document)
    yield from (comparison.causes, comparison.causes.evidence, *comparison.causes.causes, *comparison.causes.pairs)
    yield from (report, *report.verdicts, *report.columns, *report.measured)
    yield from (standing for verdict in report.verdicts for standing in verdict.standings)
    probes = planted_probes()
    results = [outcome.result for outcome in probes.outcomes if outcome.result is not None]
    yield from (probes, *probes.outcomes, *probes.verdicts, *results)
    yield from (finding for result in results for finding in result.findings)
    yield heedful.generate(build("gpt2"), "the film was good", "beam", max_new=40)
    yield heedful.attribute(build("gpt2"), "the film was good", None, "leave-one-out", max_new=40)
    yield from (heedful.heads(build("bert"), [LONG]), claim, Example(LONG, 1))
    for failed in (None, "The reviews are not there. " * 20):
        yield Outcome(
            "figure-4", "paper", "title", "source", "about " * 100, True, "cpu", 1.0, (claim,) * 9, failed=failed
        )


def test_every_value_is_printed_in_300_characters(tiny):
    long = {type(value).__name__: len(repr(value)) for value in values(tiny) if len(repr(value)) > 300}
    assert long == {}


def test_a_value_says_what_it_holds(tiny):
    assert "lime-exact" in repr(heedful.compare(tiny, LONG, ["lime-exact", "random"]))
    assert "2 texts" in repr(heedful.trust(tiny, ["a good film", "not a dull story"], ["lime-exact"]))
    assert repr(planted_probes().outcomes[0]) == "<agreement: partly. Attention ranks words somewhat.>"
    assert repr(planted_probes().verdicts[1]) == "<ranking words by importance: In part, by agreement.>"
    assert repr(TAU) == "<Kendall's τ: 0.2 [0.1, 0.3]>"
