import json
from math import log

import numpy as np
import pytest
from scipy import stats

import heedful
from heedful.document import SPECIAL, Document
from heedful.errors import BadInput, Unsupported
from heedful.models.head_patterns import PATTERNS, Heads, heads, score_heads
from heedful.statistics.intervals import mean_intervals
from tests.families import build

TEXTS = ("good film , not dull !", "the story was bad . very , very bad", "a plot and an actor")
MORE = (*TEXTS, "good good film", "very bad ! ! ! !", "a film")


def document(*pieces, special=()):
    spans, at = [], 0
    for index, piece in enumerate(pieces):
        spans.append((0, 0) if index in special else (at, at + len(piece)))
        at += 0 if index in special else len(piece) + 1
    words = np.cumsum([index not in special for index in range(len(pieces))]) - 1
    words[list(special)] = SPECIAL
    text = " ".join(piece for index, piece in enumerate(pieces) if index not in special)
    return Document(text, np.arange(len(pieces)), pieces, tuple(spans), words, np.ones(len(pieces), dtype=bool))


def random_maps(shape, seed=0):
    weights = np.random.default_rng(seed).gamma(0.3, size=shape) + 1e-6
    return weights / weights.sum(axis=-1, keepdims=True)


def by_hand(document, layer):
    """The definitions read aloud, one weight at a time; layer is (head, query, key)."""
    n, n_keys = len(document.ids), layer.shape[2]
    result = np.zeros((len(layer), len(PATTERNS)))
    for head, matrix in enumerate(layer):
        means = {name: [] for name in PATTERNS}
        for q in range(n):
            row = dict.fromkeys(PATTERNS, 0.0)
            row["padding"] = 1.0
            for k in range(min(n, n_keys)):
                weight = float(matrix[q, k])
                special = document.words[k] == SPECIAL
                row["padding"] -= weight
                row["previous"] += weight * (k == q - 1)
                row["next"] += weight * (k == q + 1)
                row["itself"] += weight * (k == q)
                row["special"] += weight * special
                row["first"] += weight * (k == 0)
                row["punctuation"] += weight * (document.pieces[k] in ".,!?" and not special)
                row["sentence-end"] += weight * (document.pieces[k] in ".!?" and not special)
                row["comma"] += weight * (document.pieces[k] == "," and not special)
                row["same-word"] += weight * (k != q and document.pieces[k] == document.pieces[q] and not special)
            seen = [k for k in range(n_keys) if any(layer[h, q, k] > 0 for h in range(len(layer)))]
            total = sum(float(matrix[q, k]) for k in seen)
            shares = [float(matrix[q, k]) / total for k in seen]
            if len(seen) > 1:
                row["broad"] = -sum(p * log(p) for p in shares if p > 0) / log(len(seen))
            for name in PATTERNS:
                if (name, q) not in (("previous", 0), ("next", n - 1)):
                    means[name].append(row[name])
        result[head] = [sum(means[name]) / len(means[name]) for name in PATTERNS]
    return result


def score(result, pattern, layer=0, head=0):
    return result.scores[layer, head, PATTERNS.index(pattern)]


def test_scores_are_those_of_the_definitions(tiny):
    result = heads(tiny, TEXTS)
    each = []
    for text in TEXTS:
        read = tiny.encode(text)
        each.append([by_hand(read, layer[:, : len(read.ids)]) for layer in tiny.maps(read)])
    assert result.scores == pytest.approx(np.mean(each, axis=0), abs=1e-12)
    assert result.interval is None
    assert result.error is None
    assert (result.patterns, result.n_texts, result.model) == (PATTERNS, len(TEXTS), tiny.fingerprint)


def test_intervals_over_texts_stay_in_the_range_of_scores_and_follow_the_one_rule(tiny):
    """Student's interval of these texts leaves [0, 1]; scores that are equal for all texts have none."""
    result = heads(tiny, MORE)
    each = np.stack([heads(tiny, text).scores for text in MORE])
    half_width = stats.t.ppf(0.975, len(MORE) - 1) * stats.sem(each, axis=0)
    assert (each.mean(axis=0) - half_width).min() < 0
    low, high = result.interval
    for place in np.ndindex(*result.scores.shape):
        values = each[:, *place]
        expected = [end[0] for end in mean_intervals(values[None], (0.0, 1.0))]
        assert [low[place], high[place]] == pytest.approx(expected, rel=1e-9, nan_ok=True)
        assert np.isnan(low[place]) == (np.ptp(values) <= 1e-12)
    assert low.min() >= 0
    assert high.max() <= 1
    arms = np.maximum(result.scores - low, high - result.scores)
    assert np.array_equal(result.error, arms, equal_nan=True)
    assert json.loads(json.dumps(result.as_dict(), allow_nan=False))["high"][0][0][0] == pytest.approx(high[0, 0, 0])


def test_equal_scores_of_all_texts_have_no_interval_and_none_is_not_a_number_in_json():
    result = heads(build("gpt2"), MORE)
    following = [row for row in result.as_rows() if row["pattern"] == "next"]
    assert {(row["score"], row["low"], row["high"], row["error"]) for row in following} == {(0.0, None, None, None)}
    json.dumps(result.as_dict(), allow_nan=False)


@pytest.mark.parametrize("n_keys", [4, 7, 11])
def test_any_number_of_keys_is_read(n_keys):
    read = document("[cls]", "very", ",", "very", "good", "!", "[sep]", special=(0, 6))
    maps = random_maps((2, 3, 7, n_keys))
    expected = [by_hand(read, layer) for layer in maps]
    assert score_heads(read, maps).scores == pytest.approx(np.array(expected), abs=1e-12)


def test_uniform_is_what_even_attention_over_the_visible_keys_scores(tiny):
    causal = np.tril(random_maps((2, 3, 6, 6)))
    causal /= causal.sum(axis=-1, keepdims=True)
    even = np.tril(np.ones((1, 6, 6))) / np.arange(1, 7)[:, None]
    read = document("the", "film", ",", "the", "plot", "!")
    assert score_heads(read, causal).uniform == pytest.approx(by_hand(read, even)[0], abs=1e-12)
    read = tiny.encode(TEXTS[0])
    n, n_keys = len(read.ids), tiny.maps(read).shape[3]
    uniform = dict(zip(PATTERNS, score_heads(read, tiny.maps(read)).uniform, strict=True))
    assert uniform["padding"] == pytest.approx(1 - n / n_keys)
    assert uniform["broad"] == pytest.approx(1)
    assert uniform["itself"] == pytest.approx(1 / n_keys)


@pytest.mark.parametrize(("pattern", "shift"), [("previous", -1), ("itself", 0), ("next", 1)])
def test_a_shift_scores_one_on_its_pattern_and_is_not_broad(pattern, shift):
    maps = np.eye(5, k=shift)[None, None]
    if shift:
        maps[0, 0, 0 if shift < 0 else 4, 2] = 1
    result = score_heads(document("a", "b", "c", "d", "e"), maps)
    assert score(result, pattern) == pytest.approx(1)
    assert score(result, "broad") == 0


def test_a_head_with_one_target_scores_one_there():
    read = document("[cls]", "so", "so", ".", "[sep]", special=(0, 4))
    for key, patterns in {0: ("first", "special"), 3: ("punctuation", "sentence-end"), 4: ("special",)}.items():
        maps = np.zeros((1, 1, 5, 5))
        maps[..., key] = 1
        result = score_heads(read, maps)
        assert [score(result, pattern) for pattern in patterns] == [1] * len(patterns)
        others = {"first", "special", "punctuation", "sentence-end", "comma", "same-word", "padding"} - set(patterns)
        assert [score(result, pattern) for pattern in others] == [0] * len(others)


def test_full_stops_are_told_from_commas():
    maps = np.zeros((1, 1, 5, 5))
    maps[..., 1], maps[..., 4] = 0.75, 0.25
    result = score_heads(document("so", "...", "so", "so", ","), maps)
    assert [score(result, name) for name in ("punctuation", "sentence-end", "comma")] == [1, 0.75, 0.25]


def test_special_tokens_are_not_the_same_word():
    maps = np.full((1, 1, 4, 4), 0.25)
    assert score(score_heads(document("[sep]", "so", "so", "[sep]", special=(0, 3)), maps), "same-word") == 0.125


def test_punctuation_is_read_from_the_text_where_a_piece_marks_a_space():
    read = document("so", ",")
    read = Document("so ,", read.ids, ("so", "Ġ,"), ((0, 2), (3, 4)), read.words, read.known)
    assert score(score_heads(read, np.full((1, 1, 2, 2), 0.5)), "punctuation") == 0.5


def test_a_causal_model_has_no_next():
    maps = np.tril(random_maps((1, 2, 6, 6)))
    result = score_heads(document(*"abcdef"), maps / maps.sum(axis=-1, keepdims=True))
    assert not result.scores[:, :, PATTERNS.index("next")].any()
    assert result.uniform[PATTERNS.index("next")] == 0


def test_a_sharp_head_beside_others_is_not_broad():
    maps = np.stack([np.full((4, 4), 0.25), np.eye(4)])[None]
    result = score_heads(document(*"abcd"), maps)
    assert score(result, "broad", head=0) == pytest.approx(1)
    assert score(result, "broad", head=1) == 0


def test_heads_are_named_after_patterns_above_uniform_attention():
    n = 8
    uniform, previous = np.full((n, n), 1 / n), np.eye(n, k=-1) * 0.9 + 0.1 / n
    previous[0] = 1 / n
    # A third head looks four tokens on: sharp, but by none of the patterns.
    far = np.roll(np.eye(n), 4, axis=1)
    actual = score_heads(document(*"abcdefgh"), np.stack([uniform, previous, far])[None])
    result = Heads(PATTERNS, actual.scores, None, actual.uniform, 1, "")
    assert result.names[0] == ("broad", "previous", "other")
    assert result.excess[0, 0] == pytest.approx(np.zeros(len(PATTERNS)), abs=1e-9)


def test_the_strongest_heads_come_first(tiny):
    result = heads(tiny, TEXTS[0])
    best = result.strongest("first", 2)
    scores = result.scores[0, :, PATTERNS.index("first")]
    assert [items for _, _, items in best] == sorted(scores.tolist(), reverse=True)[:2]
    assert all(result.scores[layer, head, PATTERNS.index("first")] == items for layer, head, items in best)
    with pytest.raises(BadInput, match="did you mean 'previous'"):
        result.strongest("previus")


def test_rows_and_dictionary_hold_every_number(tiny):
    result = heads(tiny, TEXTS)
    rows = result.as_rows()
    assert len(rows) == result.scores.size
    for row in rows:
        index = PATTERNS.index(row["pattern"])
        assert row["score"] == result.scores[row["layer"], row["head"], index]
        assert row["error"] is None
        assert row["uniform"] == result.uniform[index]
    assert json.loads(json.dumps(result.as_dict()))["scores"] == result.scores.tolist()


def test_one_text_has_no_interval(tiny):
    result = heads(tiny, TEXTS[0])
    assert result.error is None
    assert {row["error"] for row in result.as_rows()} == {None}


def test_progress_is_called_after_every_text(tiny):
    calls = []
    heads(tiny, TEXTS, progress=lambda done, of: calls.append((done, of)))
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_what_cannot_be_scored_is_refused_in_a_sentence(tiny, monkeypatch):
    with pytest.raises(BadInput, match="No text"):
        heads(tiny, [])
    with pytest.raises(BadInput, match="contains no words"):
        heads(tiny, ["good", " "])
    with pytest.raises(BadInput, match="int was given"):
        heads(tiny, ["good", 3])
    bag = heedful.Bag([1.0, 2.0], [1.0, -1.0])
    with pytest.raises(BadInput, match="between the tokens of one text"):
        heads(bag, bag.text)
    with pytest.raises(BadInput, match="finite"):
        score_heads(document("a", "b"), np.full((1, 1, 2, 2), np.nan))
    monkeypatch.setattr(type(bag), "offers", frozenset({"masks"}))
    with pytest.raises(Unsupported, match="does not offer"):
        heads(bag, bag.text)
