"""What is read in is an explanation like our own, under a name that is not ours."""

import subprocess
import sys

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from tests.conftest import tiny_model
from tests.families import build, pictures

TEXT = "the good film was not dull, the plot was good"


@pytest.fixture
def ours(tiny):
    return heedful.explain(tiny, TEXT, "lime", target=1, n_samples=60)


def test_the_name_is_never_one_of_ours(tiny):
    names = [heedful.read(tiny, TEXT, np.ones(11), name=name).method for name in (None, "lime", "lime (read)")]
    assert names == ["numbers (read)", "lime (read)", "lime (read)"]
    assert not any(name.endswith("(read)") for name in heedful.methods())
    for name in ("", "  "):
        with pytest.raises(BadInput, match="^The name must be a non-empty string"):
            heedful.read(tiny, TEXT, np.ones(11), name=name)


@pytest.mark.parametrize(
    ("score", "signed", "expected"),
    [(1.0, None, False), (-1.0, None, True), (1.0, True, True), (-1.0, True, True), (1.0, False, False)],
)
def test_signed_is_inferred_or_set(tiny, score, signed, expected):
    values = np.ones(11)
    values[3] = score
    assert heedful.read(tiny, TEXT, values, signed=signed).signed is expected


def test_a_sign_that_is_denied_is_refused(tiny):
    with pytest.raises(BadInput, match="^signed=False was given, but 11 of 11 scores are negative"):
        heedful.read(tiny, TEXT, -np.ones(11), signed=False)


def test_zeros_are_allowed_with_a_note(tiny):
    e = heedful.read(tiny, TEXT, np.zeros(11))
    assert e.notes[-1] == "All words have score 0, so they cannot be ranked."
    assert not e.signed


def test_the_target_and_the_output_are_the_model_s(tiny):
    for asked in ({}, {"target": "neutral"}, {"target": 2, "against": 0}, {"target": 0, "scale": "log-probability"}):
        read = heedful.read(tiny, TEXT, np.ones(11), **asked)
        own = heedful.explain(tiny, TEXT, "random", **asked)
        assert (read.target, read.output, read.model, read.units) == (own.target, own.output, own.model, own.units)
    with pytest.raises(BadInput, match="There is no class 'awful'"):
        heedful.read(tiny, TEXT, np.ones(11), target="awful")


def test_what_was_read_can_be_saved_shown_and_coarsened(tiny, tmp_path):
    read = heedful.read(tiny, TEXT, np.arange(11.0))
    read.save(tmp_path / "e.json")
    assert heedful.Explanation.load(tmp_path / "e.json").as_dict() == read.as_dict()
    assert read.to("type").scores.sum() == read.scores.sum()
    assert "numbers (read)" in read._repr_html_()


def test_an_explanation_of_ours_is_read_from_memory_and_from_its_file(tiny, ours, tmp_path):
    ours.save(tmp_path / "e.json")
    for given in (ours, tmp_path / "e.json", str(tmp_path / "e.json")):
        read = heedful.read(tiny, TEXT, given)
        assert read.method == "lime (read)"
        assert read.scores.tobytes() == ours.scores.tobytes()
        assert read.error.tobytes() == ours.error.tobytes()
        assert (read.target, read.output, read.settings) == (ours.target, ours.output, ours.settings)
        assert read.notes == ours.notes
    assert heedful.read(tiny, TEXT, ours, unit="type").scores.tolist() == ours.to("type").scores.tolist()
    scaled = heedful.explain(tiny, TEXT, "leave-one-out", target=2, against=0, scale="log-probability")
    assert heedful.read(tiny, TEXT, scaled).target == scaled.target


def test_an_explanation_of_ours_that_does_not_fit_is_refused(tiny, ours, tmp_path):
    with pytest.raises(BadInput, match="^heedful explained another text: it has 'the good f.* where this one has 'a"):
        heedful.read(tiny, "a good film", ours)
    with pytest.raises(BadInput, match="^The explanation is of the logit of positive, not of the logit of negative"):
        heedful.read(tiny, TEXT, ours, target=0)
    short = tiny_model(T_max=5)
    with pytest.raises(BadInput, match="^The explanation has 11 words; this model splits the text into 4"):
        heedful.read(short, TEXT, ours)
    other = heedful.read(tiny_model(seed=7), TEXT, ours)
    assert other.notes[-1] == f"This explanation is of another model, {tiny.fingerprint}."
    assert other.output != ours.output
    for name in ("none.json", "e.json"):
        (tmp_path / "e.json").write_text("{}")
        with pytest.raises(BadInput, match=f"^{name} is not an explanation that heedful saved"):
            heedful.read(tiny, TEXT, tmp_path / name)


def test_a_picture_s_explanation_is_read_with_the_same_picture():
    model, (picture, other, _) = build("vit"), pictures()
    ours = heedful.explain(model, picture, "leave-one-out")
    assert heedful.read(model, picture, ours).scores.tobytes() == ours.scores.tobytes()
    with pytest.raises(BadInput, match="^The explanation is of another image"):
        heedful.read(model, other, ours)


MISUSE = """
import heedful
model = heedful.load("paper")
for given, asked in (
    ([1.0, 2.0], {"name": 3}), ([1.0, 2.0], {"unit": 3}), ([1.0, 2.0], {"target": [1]}),
    ([1.0, 2.0], {"scale": "odds"}), (print, {}), (3.0, {}), ("1 2", {}), ({1: [(0, 0.5)]}, {}),
    (b"12", {}), ({"good", "film"}, {}),
):
    try:
        heedful.read(model, "good film", given, **asked)
    except heedful.HeedfulError as error:
        print(error)
"""


@pytest.mark.slow
def test_misuse_gives_a_one_sentence_error():
    run = subprocess.run([sys.executable, "-c", MISUSE], capture_output=True, text=True)
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    assert len(lines) == 10
    assert lines[0] == "The name must be a non-empty string; 3 was given."
    assert lines[4] == "Scores must be numbers, one per unit; builtin_function_or_method was given."
    assert lines[5].startswith(
        "Numbers of shape () were given; give one number per unit of one text, or tokens × embedding"
    )
    assert lines[6].startswith("1 2 is not an explanation that heedful saved")
    assert lines[7] == "The keys of a dictionary of scores must be words; {1: [(0, 0.5)]} was given."


LAZY = """
import sys, heedful
model = heedful.load("paper")
heedful.read(model, "a good film", {"good": 1.0})
print([name for name in ("sklearn", "transformers", "shap", "lime", "captum", "inseq") if name in sys.modules])
"""


@pytest.mark.slow
def test_no_other_package_is_imported():
    run = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


def test_lime_s_list_with_a_repeated_word_is_refused_unless_its_places_are_certain(paper):
    """lime lists words by size: a repeated word in such a list has no place."""
    text = "good film , good plot and good actors"
    for pairs in (
        [("good", 0.5), ("film", 0.3), ("good", 0.1)],
        [("good", 0.1), ("film", 0.3), ("good", 0.2)],
        [("film", 0.5), ("good", -0.4), ("and", 0.3), ("good", 0.2)],
    ):
        with pytest.raises(BadInput, match="'good' is named more than once"):
            heedful.read(paper, text, pairs)
    # Every word in reading order, and not by size: the places are certain.
    whole = [("good", 0.1), ("film", 0.3), ("good", 0.2), ("plot", 0), ("and", 0.4), ("good", -0.3), ("actors", 1)]
    read = heedful.read(paper, text, whole)
    assert dict(zip(range(9), read.scores.tolist(), strict=False)) == pytest.approx(
        dict(enumerate([0.1, 0.3, 0.0, 0.2, 0.0, 0.4, -0.3, 1.0]))
    )


def test_lists_of_the_official_lime_are_read_rightly_or_refused():
    """Without a bag lime names a word at every place; only the explanation itself knows which is which."""
    from lime.lime_text import LimeTextExplainer

    model, rng, n_right, n_refused = heedful.load("paper"), np.random.default_rng(0), 0, 0
    for _ in range(12):
        text = " ".join(rng.choice(["good", "bad", "film", "plot", "not"], size=4))
        theirs = LimeTextExplainer(random_state=0, bow=False).explain_instance(
            text, model, labels=(1,), num_features=4, num_samples=50
        )
        try:
            read = heedful.read(model, text, theirs.as_list(label=1), target=1, unit="word")
        except BadInput:
            n_refused += 1
            continue
        whole = heedful.read(model, text, theirs, target=1, unit="word")
        if len(set(text.split())) == len(text.split()):
            assert np.allclose(read.scores, whole.scores)
        n_right += np.allclose(read.scores, whole.scores)
    assert n_right + n_refused == 12
    assert n_refused


def test_a_word_stands_for_its_other_spellings_unless_they_are_named_too():
    from tests.families import build

    model, text = build("gpt2"), "The film and the plot"
    read = heedful.read(model, text, {"the": 3.0, "film": 1.0, "and": 0.0, "plot": 0.0}, unit="word")
    assert read.scores.tolist() == pytest.approx([1.5, 1.0, 0.0, 1.5, 0.0])
    assert any("'the' also stands for the same word in other case" in note for note in read.notes)
    both = heedful.read(model, text, {"the": 3.0, "The": 1.0, "film": 1.0, "and": 0.0, "plot": 0.0}, unit="word")
    assert both.scores.tolist() == pytest.approx([1.0, 1.0, 0.0, 3.0, 0.0])
