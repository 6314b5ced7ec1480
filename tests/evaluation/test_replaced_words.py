"""Words that are ranked and replaced: how many, which, and what the text then is."""

from fractions import Fraction

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput
from heedful.evaluation.replaced_words import ReplacedTexts, WordTexts, rank_words, ranks_of, read_spans
from heedful.explainers import configure
from tests.conftest import tiny_model
from tests.planted import EXAMPLES, WordCounts

TEXTS = ("A fine film; but (dull)!", "very good", "film")


def texts_with(lengths):
    lengths = np.array(lengths)
    return WordTexts(("",) * len(lengths), np.zeros(len(lengths), int), np.zeros((lengths.sum(), 2), int), lengths)


@pytest.mark.parametrize("mode", ["remove", "keep"])
@pytest.mark.parametrize("percent", [0, 10, 29, 50, 90, 100])
def test_as_many_words_as_the_share_says_are_replaced(mode, percent):
    rng, lengths = np.random.default_rng(percent), [1, 2, 5, 10, 50]
    ranks = [rng.permutation(n) for n in lengths]
    gone = texts_with(lengths).replaced(np.concatenate(ranks), mode, percent / 100).gone
    for own, n, row in zip(ranks, lengths, np.split(gone, np.cumsum(lengths)[:-1]), strict=True):
        by_strength = sorted(range(n), key=lambda word, own=own: own[word], reverse=mode == "keep")
        n_gone = int(Fraction(percent, 100) * n + Fraction(1, 2))
        assert np.flatnonzero(row).tolist() == sorted(by_strength[:n_gone])


def test_words_are_replaced_or_deleted_in_the_text_and_what_was_not_read_is_cut_off():
    model = heedful.wrap(WordCounts(["a b"], [0], 0))
    spans, lengths = read_spans(model, TEXTS)
    assert lengths.tolist() == [9, 2, 1]
    words = WordTexts(TEXTS, np.zeros(3, int), spans, lengths)
    changed = words.replaced(np.concatenate([np.arange(n) for n in lengths]), "remove", 0.5)
    # 4.5, 1 and 0.5 words, halves up.
    assert changed.texts("[MASK]") == ["[MASK] [MASK] [MASK][MASK] [MASK] (dull)!", "[MASK] good", "[MASK]"]
    assert changed.texts("") == ["( dull ) !", "good", ""]
    assert words.all_or_none(False).texts("x") == list(TEXTS)
    short = tiny_model(T_max=3)
    spans, lengths = read_spans(short, TEXTS)
    assert WordTexts(TEXTS, np.zeros(3, int), spans, lengths).all_or_none(False).texts("x")[0] == "A fine"


def test_white_space_does_not_tell_where_words_were_deleted():
    model, text = heedful.wrap(WordCounts(["a b"], [0], 0)), "a fine film; but\n (dull)  indeed!"
    words = WordTexts((text,), np.zeros(1, int), *read_spans(model, [text]))
    n = len(words.spans)
    assert words.all_or_none(False).texts("") == ["a fine film ; but ( dull ) indeed !"]
    own = words.all_or_none(False).texts("")[0].split(" ")
    for gone in [[1], [0, 2], [4, 5, 6], [n - 1], [*range(n)]]:
        ranks = np.array([int(word not in gone) * n + word for word in range(n)])
        (left,) = ReplacedTexts(words, ranks < n).texts("")
        # A text in which those words never stood.
        assert left == " ".join(word for place, word in enumerate(own) if place not in gone)


def test_words_are_ranked_by_the_size_of_their_scores_and_ties_by_lot():
    model, texts = tiny_model(n_classes=2), [example.text for example in EXAMPLES["test"][:5]] + ["great film", ""]
    n_threads = torch.get_num_threads()
    ranks, n_refused = rank_words(model, configure("lime-exact", {"unit": "word"}), texts)
    assert torch.get_num_threads() == n_threads
    assert n_refused == 0
    lengths = read_spans(model, texts)[1]
    for text, row in zip(texts[:-1], np.split(ranks, np.cumsum(lengths)[:-1])[:-1], strict=True):
        scores = np.abs(heedful.explain(model, text, "lime-exact", target=0, against=1).scores)
        assert sorted(row.tolist()) == list(range(len(scores)))
        assert (np.diff(scores[np.argsort(row)]) <= 1e-12).all()
    document = model.encode("good bad dull film story plot")
    assert ranks_of(np.zeros(6), document).tolist() != list(range(6))


def test_a_text_that_the_method_cannot_explain_is_ranked_by_lot_and_counted():
    explainer = configure("lime", {"unit": "word", "n_samples": 50})
    ranks, n_refused = rank_words(tiny_model(n_classes=2), explainer, ["good", "good bad film"])
    assert len(ranks) == 4
    assert n_refused == 1


@pytest.mark.slow
def test_processes_rank_as_this_one_does_and_what_cannot_be_sent_is_refused():
    texts, rows = [example.text for example in EXAMPLES["test"][:40]], []
    for n_workers in (1, 2):
        explainer = configure("gradient-x-input", {"unit": "word"})
        rows.append(rank_words(tiny_model(n_classes=2), explainer, texts, n_workers)[0])
    assert (rows[0] == rows[1]).all()
    unnamed = heedful.wrap(lambda texts: [[0.0, 1.0]] * len(texts))
    with pytest.raises(BadInput, match="cannot be sent to other processes"):
        rank_words(unnamed, configure("random", {"unit": "word"}), texts, 2)
