import json

import pytest

from heedful.evaluation.probe_report import USES, ProbeOutcome, ProbeReport
from heedful.evaluation.probes import Finding, ProbeResult
from heedful.evaluation.probes.adversarial import Adversarial
from heedful.evaluation.probes.identifiability import Identifiability
from heedful.evaluation.probes.permuted import Permuted
from heedful.evaluation.probes.trained_adversary import TrainedAdversary
from heedful.statistics.quantity import Quantity

ONLY = "the only explanation"


def outcome(probe, answer):
    if answer is None:
        return ProbeOutcome(probe, {}, None, "It cannot be trained.")
    finding = Finding("what", Quantity(0.5, 0.25, 0.75), Quantity(0.0), "nothing", "0.4")
    return ProbeOutcome(probe, {"n": 1}, ProbeResult((finding,), answer, f"It says {answer}."), "", 1.5)


def report(*answers):
    kinds = (Adversarial(), Identifiability(), TrainedAdversary())
    outcomes = tuple(outcome(kind, answer) for kind, answer in zip(kinds, answers, strict=False))
    return ProbeReport("abc", "a model", "imdb", 20, "word", 0, outcomes)


@pytest.mark.parametrize(
    ("answers", "verdict", "rests_on"),
    [
        (("no", "no", "no"), "no", 3),
        (("yes", "yes"), "yes", 1),
        (("yes", "no"), "partly", 2),
        (("no", "yes", "yes"), "no", 1),
        (("partly", "partly"), "partly", 2),
        (("unknown", "no", None), "no", 1),
        (("unknown", "unknown"), "unknown", 2),
        ((None, None), "unknown", 0),
        ((), "unknown", 0),
    ],
)
def test_a_verdict_is_what_the_probes_that_decide_agree_on(answers, verdict, rests_on):
    (found,) = [one for one in report(*answers).verdicts if one.use == ONLY]
    assert (found.answer, len(found.rests_on)) == (verdict, rests_on)
    words = {"yes": "Yes", "no": "No", "partly": "In part", "unknown": "Not decided"}
    assert found.headline.startswith(words[verdict] if rests_on else "No probe")
    assert all(one.probe.name in found.headline for one in found.rests_on)


def test_every_use_has_a_verdict_and_other_uses_do_not_count():
    verdicts = report("no", "no").verdicts
    assert tuple(one.use for one in verdicts) == USES
    assert all(one.rests_on == () for one in verdicts if one.use != ONLY)


def test_a_report_is_json_without_numbers_that_are_not_known():
    whole = report("no", None)
    (first, second) = json.loads(json.dumps(whole.as_dict()))["probes"]
    assert first["findings"][0]["value"] == [0.5, 0.25, 0.75]
    assert first["findings"][0]["null"] == [0.0, None, None]
    assert (first["answer"], first["why"]) == ("no", "It says no.")
    assert (second["answer"], second["why"], second["findings"]) == ("unknown", "It cannot be trained.", [])
    assert "seconds" not in first
    assert whole["identifiability"].refusal == "It cannot be trained."
    assert "adversarial: no" in repr(whole)


def test_a_report_is_saved_by_its_ending_and_shown(tmp_path):
    whole = report("no", "yes")
    whole.save(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["dataset"] == "imdb"
    whole.save(tmp_path / "folder")
    assert {path.name for path in (tmp_path / "folder").iterdir()} >= {"report.html", "report.json"}
    assert Permuted.use not in [v.use for v in whole.verdicts if v.rests_on]
    assert "It says no." in whole._repr_html_()
