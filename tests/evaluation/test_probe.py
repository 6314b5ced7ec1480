import json

import numpy as np
import pytest

import heedful
from heedful.datasets import Dataset
from heedful.errors import BadInput, Unsupported
from heedful.evaluation.probe import chosen_probes, probes, training_source, usable_folder
from heedful.evaluation.probe_report import USES
from heedful.evaluation.probes.permuted import Permuted
from tests.evaluation.probes.models import LABELS, TEXTS, Stopped, sharp

DATA = [*zip(TEXTS, LABELS, strict=True)]
TRAIN = [(f"{text} {word}", label) for text, label in DATA for word in ("film", "plot")]


def quiet(model, data, tests, **settings):
    return heedful.probe(model, data, tests, progress=None, **settings)


def test_probes_are_sorted_by_what_they_judge():
    uses = [USES.index(kind.use) for kind in probes().values()]
    assert uses == sorted(uses)
    assert len(uses) >= 10


def test_probes_are_named_once_with_their_own_settings():
    one, other = chosen_probes(["permuted", "erasure", "permuted"], {"n_permutations": 3})
    assert one == Permuted(n_permutations=3)
    assert other.name == "erasure"
    assert len(chosen_probes(None, {})) == len(chosen_probes("all", {})) == len(probes())
    assert [kind.name for kind in chosen_probes("deceived", {})] == ["deceived"]


@pytest.mark.parametrize(
    ("tests", "settings", "sentence"),
    [
        ("permutd", {}, "no probe 'permutd'|permuted"),
        ([], {}, "No probe was named"),
        ("permuted", {"epsilon": 0.1}, "epsilon"),
        ("permuted", {"n_permutations": "many"}, "n_permutations"),
        ("adversarial", {"epsilon": 2.0}, "epsilon"),
    ],
)
def test_unknown_names_and_settings_are_refused(tests, settings, sentence):
    with pytest.raises(heedful.HeedfulError, match=f"(?i){sentence}"):
        chosen_probes(tests, settings)


def test_the_training_texts_are_those_named_or_of_the_data_set():
    assert training_source(DATA, None) is None
    assert training_source(DATA, TRAIN).texts[0] == TRAIN[0][0]
    assert isinstance(training_source("imdb", None), Dataset)
    assert training_source(DATA, "sst").name == "sst"
    with pytest.raises(heedful.HeedfulError, match="data set"):
        training_source(DATA, "imbd")


def test_a_folder_that_cannot_be_used_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(heedful.HeedfulError, match="cannot be used as a folder"):
        usable_folder(tmp_path / "file")
    assert usable_folder(tmp_path / "new").path == tmp_path / "new"


def test_the_report_says_what_was_probed():
    report = quiet(sharp(), [*DATA, ("", 0), DATA[0]], ["permuted", "identifiability"])
    assert report.n_texts == 6
    assert [outcome.probe.name for outcome in report.outcomes] == ["permuted", "identifiability"]
    notes = " ".join(report.notes)
    assert "could not be read and were left out: 1" in notes
    assert "Copies of other texts were left out: 1" in notes


def test_trained_models_are_tested_on_the_probed_texts_alone():
    probe = {"tests": ["uniform-and-frozen"], "n_epochs": 1, "n_seeds": 1}
    report = quiet(sharp(), DATA, train=[*TRAIN, *DATA], **probe)
    assert any("trained on 12 texts" in finding.what for finding in report.outcomes[0].result.findings)
    fewer = quiet(sharp(), DATA, train=TRAIN, n_train=8, **probe)
    assert any("trained on 8 texts" in finding.what for finding in fewer.outcomes[0].result.findings)
    for train, reason in ((DATA, "is also probed"), ([(text, 0) for text, _ in TRAIN], "at least two classes")):
        with pytest.raises(Unsupported, match=reason):
            quiet(sharp(), DATA, train=train, **probe)
    with pytest.raises(Unsupported, match="labels of at least two classes"):
        quiet(sharp(), TEXTS, train=TRAIN, **probe)


def test_a_probe_that_is_refused_stays_in_the_report_and_if_all_are_it_is_an_error():
    report = quiet(sharp(), DATA, ["permuted", "deceived"])
    assert "give texts with labels" in report["deceived"].refusal
    assert report["deceived"].answer == "unknown"
    with pytest.raises(Unsupported, match="give texts with labels"):
        quiet(sharp(), DATA, "deceived")


def test_a_stopped_run_resumes_and_other_settings_are_refused(tmp_path, monkeypatch):
    measure = Permuted.measure

    def stopped(self, inquiry):
        raise Stopped

    monkeypatch.setattr(Permuted, "measure", stopped)
    with pytest.raises(Stopped):
        quiet(sharp(), DATA, ["erasure", "permuted"], out=tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "steps").iterdir()}
    monkeypatch.setattr(Permuted, "measure", measure)
    resumed = quiet(sharp(), DATA, ["erasure", "permuted"], out=tmp_path)
    assert [*before] == ["erasure-0.json"]
    assert (tmp_path / "steps" / "erasure-0.json").stat().st_mtime_ns == before["erasure-0.json"]
    whole = quiet(sharp(), DATA, ["erasure", "permuted"])
    assert json.dumps(resumed.as_dict()) == json.dumps(whole.as_dict())
    for other in ({"seed": 1}, {"n_permutations": 3}):
        with pytest.raises(BadInput, match="contains another run"):
            quiet(sharp(), DATA, ["erasure", "permuted"], out=tmp_path, **other)
    with pytest.raises(BadInput, match="contains another run"):
        quiet(sharp(1), DATA, ["erasure", "permuted"], out=tmp_path)


def test_progress_counts_up_to_the_end():
    seen = []
    heedful.probe(sharp(), DATA, ["erasure", "permuted"], progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (200, 200)


def test_a_model_without_attention_is_refused():
    model = heedful.wrap(lambda texts: np.array([[len(text), 1.0] for text in texts]), classes=["long", "short"])
    with pytest.raises(Unsupported, match="no attention layers"):
        quiet(model, DATA, None)


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n_train": 1}, {"seed": -1}])
def test_wrong_arguments_are_a_sentence(wrong):
    with pytest.raises(heedful.HeedfulError):
        quiet(sharp(), DATA, "permuted", **wrong)
