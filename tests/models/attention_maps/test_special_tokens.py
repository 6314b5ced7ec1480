import numpy as np
import pytest

import heedful
from heedful.document import SPECIAL
from heedful.models.attention_maps.special_tokens import SpecialAttention, attention_received, special_attention
from heedful.statistics.quantity import Quantity
from tests.families import build, texts_for

MORE = [*texts_for("bert"), "a dull plot", "an unforgettable actor was bad", "so it was !"]


def by_hand(document, maps):
    """The four means and the share of split words, token by token, of a model in which all tokens see each other."""
    n = len(document.ids)
    got = [np.mean([sum(A[q, t] for q in range(n)) for layer in maps for A in layer]) for t in range(n)]
    special = [got[t] for t in range(n) if document.words[t] == SPECIAL]
    tokens = [got[t] for t in range(n) if document.words[t] != SPECIAL]
    words = {w: [got[t] for t in range(n) if document.words[t] == w] for w in set(document.words) - {SPECIAL}}
    whole = [parts[0] for parts in words.values() if len(parts) == 1]
    split = np.mean([len(parts) > 1 for parts in words.values()])
    return [np.mean(special), np.mean(tokens), np.mean([sum(p) for p in words.values()]), np.mean(whole), split]


def test_attention_received_is_that_of_the_definition():
    model = build("bert")
    for text in texts_for("bert"):
        document = model.encode(text)
        maps = model.maps(document)
        assert attention_received(document, maps) == pytest.approx(by_hand(document, maps), abs=1e-12)


def test_ratios_over_texts_are_those_of_the_means():
    model = build("bert")
    rows = np.array([by_hand(d := model.encode(text), model.maps(d)) for text in MORE])
    special = heedful.heads(model, MORE).special
    for ratio, kind in zip(special[:3], (1, 2, 3), strict=True):
        assert ratio.value == pytest.approx(rows[:, 0].sum() / rows[:, kind].sum())
        assert ratio.low < ratio.value < ratio.high
    assert special.split == pytest.approx(rows[:, 4].mean())
    assert special.plain()["per_word"] == list(special.per_word)


def test_the_interval_of_a_ratio_has_no_end_below_zero():
    # Special tokens that get much attention in one text of six.
    received = np.array([[0.9, 0.1, 0.1, 0.1, 0.0], *([[0.1, 0.1 + 0.02 * n, 0.1, 0.1, 0.0] for n in range(5)])])
    ratio = special_attention(received).per_token
    assert ratio.value == pytest.approx(1.4 / 0.8)
    assert 0 < ratio.low < ratio.value < ratio.high
    few = special_attention(received[:4]).per_token
    assert np.isnan([few.low, few.high]).all()


def test_uniform_attention_in_a_causal_model_favours_no_token():
    document = build("bert").encode("an unbelievable film")
    n = len(document.ids)
    maps = (np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None])[None, None]
    special, tokens, _, whole, split = attention_received(document, maps)
    assert [special, tokens, whole] == pytest.approx([1, 1, 1])
    assert split == pytest.approx(1 / 3)


def equal_words(document):
    """Attention shared equally by words, and by special tokens as if each were a word."""
    keys = [(True, t) if w == SPECIAL else (False, w) for t, w in enumerate(document.words.tolist())]
    row = np.array([1 / len(set(keys)) / keys.count(key) for key in keys])
    return np.repeat(row[None], len(keys), axis=0)[None, None]


def test_where_splitting_explains_all_the_ratio_to_words_is_one():
    model = build("bert")
    texts = [
        f"{word} unforgettable unbelievable storytelling" for word in ("so", "a bad", "good film", "the", "an actor")
    ]
    documents = [model.encode(text) for text in texts]
    special = special_attention(np.stack([attention_received(d, equal_words(d)) for d in documents]))
    assert special.per_token.value > 1.2
    assert special.per_word.value == pytest.approx(1)
    assert special.per_whole_word.value == pytest.approx(1)
    assert "It may be because" in special.verdict


@pytest.mark.parametrize(
    ("ratios", "split", "words"),
    [
        ([(3, 2, 4), (2, 1.5, 3), (2, 1.5, 3)], 0.2, "does not explain it"),
        ([(3, 2, 4), (1, 0.8, 1.2), (2, 1.5, 3)], 0.2, "It may be because"),
        ([(1, 0.8, 1.3), (1, 0.8, 1.2), (1, 0.8, 1.2)], 0.2, "not certain"),
        ([(3, 2, 4)] * 3, 0.0, "No word is split"),
        ([(3,), (2,), (2,)], 0.2, "not certain"),
    ],
)
def test_the_verdict_follows_the_intervals(ratios, split, words):
    assert words in SpecialAttention(*(Quantity(*ratio) for ratio in ratios), split).verdict


def test_a_model_without_special_tokens_has_no_ratio():
    assert heedful.heads(build("gpt2"), "a good film").special is None
