"""Running experiments: what lies in the folder, going on, and what goes wrong."""

import json
from dataclasses import dataclass
from typing import ClassVar, final

import pytest
from pyarrow import parquet

import heedful
from heedful.errors import BadInput, Offline, UnknownName
from heedful.experiments import Experiment
from heedful.experiments import run as reproducing
from heedful.experiments.claim import Claim, column
from heedful.experiments.figure import figure
from heedful.run_folder import sealed, unsealed

CALLS = []


@final
@dataclass(frozen=True)
class Counting(Experiment):
    """Three steps, of which each is counted."""

    name: ClassVar[str] = "counting"
    part: ClassVar = "mathematics"
    title: ClassVar[str] = "Counting"
    source: ClassVar[str] = "nowhere"

    def measure(self, workspace):
        rows = [workspace.step(f"step-{number}", lambda number=number: self.step(number)) for number in range(3)]
        return {"rows": rows}

    def step(self, number):
        CALLS.append(number)
        if len(CALLS) == 2:
            raise KeyboardInterrupt
        return {"number": number, "share": number / 3, "gap": float("nan"), "name": "a"}

    def claims(self, numbers):
        return [Claim("steps", "3", str(len(numbers["rows"])), "agrees", "Counted.")]

    def draw(self, numbers):
        drawn = figure(3.0, 2.0)
        drawn.add_subplot().plot(column(numbers["rows"], "share"))
        return {"line": drawn}


@final
@dataclass(frozen=True)
class Missing(Experiment):
    """Its data cannot be had."""

    name: ClassVar[str] = "missing"
    part: ClassVar = "paper"
    title: ClassVar[str] = "Missing"
    source: ClassVar[str] = "nowhere"

    def measure(self, workspace):
        raise Offline("The reviews are not at hand.")

    def claims(self, numbers):
        return []

    def draw(self, numbers):
        return {}


@pytest.fixture
def few(monkeypatch):
    CALLS.clear()
    monkeypatch.setattr(reproducing, "experiments_in_order", lambda: {"missing": Missing, "counting": Counting})


def test_a_stopped_run_resumes_without_repeating_a_step(few, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        heedful.reproduce(["counting"], tmp_path, quick=True)
    assert CALLS == [0, 1]
    (outcome,) = heedful.reproduce(["counting"], tmp_path, quick=True)
    assert CALLS == [0, 1, 1, 2]
    assert outcome.claims[0].ours == "3"
    again = heedful.reproduce(["counting"], tmp_path, quick=True)
    assert again == [outcome]
    assert CALLS == [0, 1, 1, 2]


def test_the_folder_holds_numbers_pictures_and_a_report(few, tmp_path):
    CALLS.extend([8, 9])
    calls = []
    outcomes = heedful.reproduce(out=tmp_path, quick=True, progress=lambda *state: calls.append(state))
    assert [outcome.name for outcome in outcomes] == ["missing", "counting"]
    assert {path.name for path in (tmp_path / "counting").iterdir()} == {
        *(
            "settings.json",
            "numbers.json",
            "measured.json",
            "outcome.json",
            "rows.parquet",
            "line.svg",
            "line.png",
            "steps",
        )
    }
    rows = json.loads((tmp_path / "counting" / "numbers.json").read_text(encoding="utf-8"))["rows"]
    assert [row["gap"] for row in rows] == [None] * 3
    assert parquet.read_table(tmp_path / "counting" / "rows.parquet").to_pylist() == rows
    assert calls[0] == ("missing", 0, 1)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [(row["experiment"], row["verdict"]) for row in report] == [("counting", "agrees")]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The reviews are not at hand." in page
    assert "data:image/svg+xml;base64," in page


def test_what_cannot_be_done_says_why_and_is_tried_again(few, tmp_path):
    (outcome,) = heedful.reproduce(["missing"], tmp_path)
    assert outcome.failed == "The reviews are not at hand."
    assert not (tmp_path / "missing" / "numbers.json").exists()


def test_another_run_s_folder_is_refused(few, tmp_path):
    CALLS.extend([8, 9])
    heedful.reproduce(["counting"], tmp_path, quick=True)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    with pytest.raises(BadInput, match="contains another run, which differs in quick"):
        heedful.reproduce(["counting"], tmp_path, quick=False)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_a_misspelt_name_is_refused_before_anything_runs(few, tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'counting'"):
        heedful.reproduce(["countin"], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_sentence(few, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BadInput, match="file cannot be used as a folder"):
        heedful.reproduce(["counting"], tmp_path / "file", quick=True)


def test_a_quick_form_that_is_too_small_decides_nothing(few, tmp_path, monkeypatch):
    CALLS.extend([8, 9])
    monkeypatch.setattr(Counting, "smaller_when_quick", True)
    (quick,) = heedful.reproduce(["counting"], tmp_path / "quick", quick=True)
    assert quick.claims[0].verdict == "not measured"
    assert "its verdict would be: agrees. Counted." in quick.claims[0].why
    (full,) = heedful.reproduce(["counting"], tmp_path / "full", quick=False)
    assert full.claims[0].verdict == "agrees"


def test_an_unfinished_run_keeps_its_device_and_a_finished_one_is_redrawn_anywhere(few, tmp_path):
    def as_if_on_a_gpu():
        path = tmp_path / "counting" / "settings.json"
        path.write_text(sealed({**unsealed(path.read_text(encoding="utf-8")), "device": "cuda"}), encoding="utf-8")

    with pytest.raises(KeyboardInterrupt):
        heedful.reproduce(["counting"], tmp_path, quick=True)
    as_if_on_a_gpu()
    with pytest.raises(BadInput, match="differs in device"):
        heedful.reproduce(["counting"], tmp_path, quick=True)
    (tmp_path / "counting" / "settings.json").unlink()
    heedful.reproduce(["counting"], tmp_path, quick=True)
    as_if_on_a_gpu()
    assert heedful.reproduce(["counting"], tmp_path, quick=True)[0].claims[0].verdict == "agrees"


def test_a_text_of_the_user_is_not_compared_with_the_published_one(few, tmp_path, monkeypatch):
    CALLS.extend([8, 9])
    monkeypatch.setattr(Counting, "claims", lambda *_: [Claim("tokens", "99", "8", "differs", "Counted.")])
    (other,) = heedful.reproduce(["counting"], tmp_path / "other", text="a fine film")
    assert other.claims[0].verdict == "differs"
    monkeypatch.setattr(Counting, "takes_text", True)
    (mine,) = heedful.reproduce(["counting"], tmp_path / "mine", text="a fine film")
    assert (mine.claims[0].verdict, mine.claims[0].published, mine.claims[0].ours) == ("new", "", "8")
    (published,) = heedful.reproduce(["counting"], tmp_path / "published")
    assert published.claims[0].verdict == "differs"


def test_a_model_of_the_user_is_not_compared_with_the_published_one(few, tmp_path, monkeypatch, tiny):
    CALLS.extend([8, 9])
    tiny.save(tmp_path / "model.safetensors", {})
    asked = {"model": str(tmp_path / "model.safetensors")}
    with pytest.raises(BadInput, match="counting does not explain one model"):
        heedful.reproduce(["counting"], tmp_path / "run", **asked)
    assert not (tmp_path / "run").exists()
    monkeypatch.setattr(Counting, "takes_model", True)
    claims = [Claim("f", "1", "2", "differs", "Ours."), Claim("Eq. (1)", "0", "1", "differs", "Wrong.", general=True)]
    monkeypatch.setattr(Counting, "claims", lambda *_: claims)
    (outcome,) = heedful.reproduce(None, tmp_path / "run", **asked)
    assert [(claim.verdict, claim.why) for claim in outcome.claims] == [
        ("new", "The source explains another model."),
        ("differs", "Wrong."),
    ]
    assert outcome.name == "counting"


def test_a_word_that_the_text_does_not_have_is_refused(few, tmp_path):
    with pytest.raises(BadInput, match="The word 'plot' is not in the text"):
        heedful.reproduce(["counting"], tmp_path, text="a fine film", word="plot")
