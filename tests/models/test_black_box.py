"""Functions of texts: what they are asked, and what is said of those that answer badly."""

import ast

import numpy as np
import pandas as pd
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported

TEXT = "Well-made, but  the film's\tplot (sadly!) isn't good…  "
BOTH = pytest.mark.parametrize("absence", ["replace", "delete"])


def shares(texts):
    """Two probabilities of each text."""
    count = np.array([text.count("o") + 0.5 * text.count("a") for text in texts])
    p = 1 / (1 + np.exp(-0.3 * count))
    return np.stack([1 - p, p], axis=1)


def lime(function, absence="replace", text=TEXT, **settings):
    settings = {"n_samples": 50, "absence": absence, "target": 0, "ridge": 0.0, **settings}
    return heedful.explain(heedful.wrap(function), text, "lime", **settings)


def wrong_where(is_wrong, wrong, right=shares):
    """A function that answers well but where a text is wrong for it."""

    def function(texts):
        rows = right(texts)
        for number, text in enumerate(texts):
            if is_wrong(text):
                rows = wrong(rows, number, text)
        return rows

    return function


def failing(error):
    def wrong(rows, number, text):
        raise error

    return wrong


@pytest.mark.parametrize(("absence", "gone"), [("replace", "[UNK]"), ("replace:Film", "Film"), ("delete", "")])
def test_the_function_gets_the_text_with_nothing_changed_but_the_words_that_go(absence, gone):
    asked = []

    def recording(texts):
        assert isinstance(texts, list)
        asked.extend(texts)
        return shares(texts)

    model = heedful.wrap(recording)
    asked.clear()
    explanation = heedful.explain(model, TEXT, "lime", n_samples=50, absence=absence)
    words = [*("Well-made", ",", "but", "the", "film's", "plot", "(", "sadly", "!", ")", "isn't", "good", "…")]
    between = ["", "", " ", "  ", " ", "\t", " ", "", "", "", " ", " ", "", "  "]
    assert list(explanation.units) == words
    assert "".join(gap + word for gap, word in zip(between, [*words, ""], strict=True)) == TEXT
    assert TEXT in asked
    possible = 0
    for text in asked:
        # Every way to read the text as gaps and, between them, a word or what stands for it.
        ends = {0}
        for gap, word in zip(between, [*words, ""], strict=True):
            starts = {end + len(gap) for end in ends if text.startswith(gap, end)}
            ends = {start + len(part) for start in starts for part in (word, gone) if text.startswith(part, start)}
        possible += len(text) in ends
    assert possible == len(asked)
    assert "".join(gap + gone for gap in between[:-1]) + between[-1] in asked
    assert len(set(asked)) == explanation.facts["masks"]


def test_every_occurrence_of_a_type_goes_at_once():
    asked = []

    def recording(texts):
        asked.extend(texts)
        return shares(texts)

    heedful.explain(heedful.wrap(recording, replacement="_"), "so good, so good so", "leave-one-out", unit="type")
    assert {"_ good, _ good _", "so _, so _ so", "so good_ so good so"} <= set(asked)


@BOTH
@pytest.mark.parametrize(
    "form",
    [
        lambda rows: rows.tolist(),
        lambda rows: tuple(map(tuple, rows)),
        lambda rows: pd.DataFrame(rows, columns=["bad", "good"]),
        lambda rows: torch.from_numpy(rows).requires_grad_(),
        lambda rows: [torch.from_numpy(row).requires_grad_() for row in rows],
        lambda rows: [[{"label": "B", "score": row[1]}, {"label": "A", "score": row[0]}] for row in rows],
        lambda rows: [
            sorted(
                [{"label": "A", "score": row[0]}, {"label": "B", "score": row[1]}], key=lambda entry: -entry["score"]
            )
            for row in rows
        ],
    ],
)
def test_scores_come_in_any_form(form, absence):
    plain, other = lime(shares, absence), lime(lambda texts: form(shares(texts)), absence)
    assert other.scores.tobytes() == plain.scores.tobytes()
    assert not other.notes


def test_half_precision_tensors_are_scores():
    assert lime(lambda texts: torch.from_numpy(shares(texts)).bfloat16()).output == pytest.approx(
        shares([TEXT])[0, 0], abs=0.01
    )


def test_labels_are_the_classes_in_any_order():
    model = heedful.wrap(lambda texts: [[{"label": "good", "score": 0.7}, {"label": "bad", "score": 0.3}]] * len(texts))
    assert model.classes == ("bad", "good")
    assert model(["x"]).tolist() == [[0.3, 0.7]]

    def strongest(texts):
        return [{"label": "good" if "o" in text else "bad", "score": 0.9} for text in texts]

    with pytest.raises(BadInput, match="returned the labels .* for one text and .* for another; .*top_k=None"):
        lime(strongest)


@BOTH
def test_a_wrong_shape_is_one_sentence(absence):
    for function in (
        lambda texts: shares(texts)[0],
        lambda texts: shares(texts)[:, :0],
        lambda texts: shares(texts)[None],
        lambda texts: shares([*texts, "x"]),
        lambda _: 3.0,
    ):
        with pytest.raises(
            BadInput, match=r"returned scores of shape \(.*\) for 3 texts; the shape must be \(texts, classes\)\.$"
        ):
            lime(function, absence)
    for function in (lambda _: None, lambda texts: ["good"] * len(texts), lambda texts: [[1.0], [1.0, 2.0]]):
        with pytest.raises(BadInput, match="^The function (did not return numbers|returned scores of shape)"):
            lime(function, absence)


@BOTH
def test_another_number_of_classes_later_is_one_sentence(absence):
    def function(texts):
        return shares(texts) if len(texts) == 3 else np.ones((len(texts), 3))

    with pytest.raises(BadInput, match=r"^The function returned 2 scores per text, then 3; the number of classes"):
        lime(function, absence)


@BOTH
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_named_with_its_text(number, absence):
    def wrong(rows, place, text):
        rows[place, 1] = number
        return rows

    function = wrong_where(lambda text: "plot" not in text and len(text) > 20, wrong)
    with pytest.raises(
        BadInput, match=rf"^The function returned {number} for the text ['\"].*['\"]…?; scores must be finite\.$"
    ):
        lime(function, absence)


@BOTH
def test_what_the_function_raises_is_named_with_the_text_it_fails_on(absence):
    def fails(text):
        return "plot" not in text and "film" in text

    with pytest.raises(BadInput) as caught:
        lime(wrong_where(fails, failing(RuntimeError("no plot\nat all"))), absence)
    assert str(caught.value).endswith(" with RuntimeError: no plot.")
    named = str(caught.value).split(" with RuntimeError")[0].removeprefix("The function failed on the text ")
    assert "plot" not in named
    assert "film" in named
    assert len(ast.literal_eval(named.rstrip("…"))) <= 60
    with pytest.raises(BadInput, match="failed on the text 'a text' with AttributeError: 'list' object"):
        lime(lambda text: text.upper(), absence)


def test_a_failure_on_the_empty_text_says_what_to_do():
    function = wrong_where(lambda text: not text.strip(), failing(ValueError("empty input")))
    with pytest.raises(BadInput) as caught:
        lime(function, "delete")
    assert str(caught.value) == (
        "The function failed on an empty text with ValueError: empty input; all words were deleted, so "
        'use absence="replace".'
    )
    assert np.isfinite(lime(function, "replace").scores).all()

    def nothing(rows, place, text):
        rows[place] = np.nan
        return rows

    with pytest.raises(BadInput, match='returned nan for an empty text; scores must be finite; .*absence="replace"'):
        lime(wrong_where(lambda text: not text.strip(), nothing), "delete")


def test_a_failure_of_no_single_text_is_reported_too():
    def function(texts):
        if len(texts) > 3:
            raise MemoryError
        return shares(texts)

    with pytest.raises(BadInput, match="with MemoryError: no reason given"):
        lime(function)


@BOTH
def test_probabilities_that_do_not_sum_to_one_are_explained_and_noted(absence):
    explanation = lime(lambda texts: 0.8 * shares(texts), absence)
    assert explanation.notes == (
        "The function's scores lie between 0 and 1 as probabilities do, but sum to 0.8; they are explained as they "
        'are. If each is a probability, say so: heedful.wrap(…, returns="probabilities").',
    )
    assert np.allclose(explanation.scores, 0.8 * lime(shares, absence).scores, atol=1e-12)
    for scores in ([0.3], [0.0, 0.0], [1.0, 1.0], [0.3, 1.2], [-0.1, 0.3], [0.5, 0.4999]):
        assert heedful.wrap(lambda texts, scores=scores: [scores] * len(texts)).notes == ()


@BOTH
def test_a_function_that_is_not_deterministic_is_explained_and_noted(absence):
    rng = np.random.default_rng(0)
    given = []

    def function(texts):
        rows = 3 + rng.normal(size=(len(texts), 2))
        given.extend(rows.ravel().tolist())
        return rows

    explanation = lime(function, absence)
    (first, *rest) = explanation.notes
    one, two = (float(word) for word in first.split() if word[0].isdigit())
    places = [place for place in range(6) if abs(given[place] - one) < 1e-5 and abs(given[6 + place] - two) < 1e-5]
    assert len(places) == 1
    assert "for the same text: it is not deterministic" in first
    # Noise is not linear in the words, so the surrogate fits badly.
    assert all("not deterministic" in note or "of the variance over masks" in note for note in rest)
    assert np.isfinite(explanation.scores).all()


def test_rounding_does_not_count_as_non_determinism():
    calls = []

    def function(texts):
        calls.append(texts)
        return shares(texts) * (1 + 1e-9 * len(calls))

    assert not any("not deterministic" in note for note in heedful.wrap(function).notes)


@BOTH
def test_a_lone_surrogate_reaches_the_function_and_its_failure_can_be_printed(absence):
    text = "good \ud83d film , bad plot"
    assert np.isfinite(lime(shares, absence, text).scores).all()
    fussy = wrong_where(lambda _: False, None)

    def strict(texts):
        return fussy([text.encode().decode() for text in texts])

    with pytest.raises(BadInput, match="with UnicodeEncodeError") as caught:
        lime(strict, absence, text)
    str(caught.value).encode("utf-8")


def test_a_function_may_modify_its_list():
    def function(texts):
        rows = shares(texts)
        texts.clear()
        return rows

    assert lime(function).scores.tobytes() == lime(shares).scores.tobytes()


def test_the_probe_of_a_function_is_counted():
    texts = []

    def function(batch):
        texts.extend(batch)
        return [[len(text), 1.0] for text in batch]

    assert heedful.wrap(function).probe_forwards == len(texts) == 6


def test_probabilities_are_found_and_said_and_their_logarithm_is_the_logarithm():
    model = heedful.wrap(shares)
    assert model.returns == "probabilities"
    assert repr(model).startswith(
        "<function shares; returns probabilities of 2 classes (score 0, score 1); offers masks;"
    )
    p = shares([TEXT])[0]
    for index in (0, 1):
        for scale, expected in (("log-probability", np.log(p)), ("probability", p), ("logit", p)):
            explanation = heedful.explain(model, TEXT, "leave-one-out", target=index, scale=scale)
            assert explanation.output == pytest.approx(expected[index], abs=1e-9)
            shown = "log-probability" if scale == "log-probability" else "probability"
            assert str(explanation.target) == f"the {shown} of score {index}"
            assert explanation.notes == ()
    assert heedful.wrap(lambda texts: 0.8 * shares(texts), returns="probabilities").notes == ()


def test_other_numbers_are_scores():
    model = heedful.wrap(lambda texts: [[float(len(text)), 3.0] for text in texts])
    assert model.returns == "scores"
    assert str(heedful.explain(model, TEXT, "leave-one-out").target) == "score 0"
    with pytest.raises(Unsupported, match="not known whether this model returns logits"):
        heedful.explain(model, TEXT, "leave-one-out", scale="probability")
    logits = heedful.wrap(model.function, returns="logits")
    explanation = heedful.explain(logits, "ab", "leave-one-out", target=1, scale="log-probability")
    assert explanation.output == pytest.approx(-np.log1p(np.exp(-1.0)), abs=1e-12)


def test_one_number_between_0_and_1_is_a_probability_only_if_the_user_says_so():
    def chance(texts):
        return shares(texts)[:, 1]

    model = heedful.wrap(chance)
    assert model.returns == "scores"
    said = heedful.wrap(chance, returns="probabilities")
    explanation = heedful.explain(said, TEXT, "leave-one-out", scale="log-probability")
    assert explanation.output == pytest.approx(np.log(chance([TEXT])[0]), abs=1e-12)


def test_a_function_that_does_not_go_on_to_return_probabilities_is_refused():
    model = heedful.wrap(wrong_where(lambda text: "film" in text, lambda rows, *_: 3 * rows))
    with pytest.raises(BadInput, match=r"returned 2\.\d+ for the text .* not a probability"):
        model([TEXT])


def test_a_function_that_returns_labels_is_noted():
    labels = heedful.explain(heedful.wrap(lambda texts: [len(text) % 2 for text in texts]), TEXT, "leave-one-out")
    assert any("as `predict` does" in note for note in labels.notes)
    scores = heedful.explain(heedful.wrap(lambda texts: [len(text) / 7 for text in texts]), TEXT, "leave-one-out")
    assert scores.notes == ()
