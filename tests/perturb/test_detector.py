import numpy as np
import pytest

import heedful
from heedful.perturb.detector import Detector, gone_of, masked_words, separation, words_read


def sentences(n, seed):
    """Texts of a tiny grammar, in which only some pairs of words are neighbours."""
    rng = np.random.default_rng(seed)
    parts = (["the", "a"], ["film", "story", "plot"], ["was", "is"], ["very", "not"], ["good", "bad", "dull"])
    return [[word for _ in range(2) for word in (str(rng.choice(part)) for part in parts)] for _ in range(n)]


def test_words_put_together_at_random_and_replaced_words_are_found():
    texts, others = sentences(90, 0), sentences(90, 1)
    rng = np.random.default_rng(0)
    assert separation(texts, [[*rng.permutation(words)] for words in others], "#").value > 0.98
    replaced = [["#", *words[1:]] for words in others]
    assert separation(texts, replaced, "#").value == 1


def test_texts_of_one_law_are_not_told_apart_and_the_interval_says_so():
    inside = [separation(sentences(60, 2 * s), sentences(60, 2 * s + 1), "#") for s in range(20)]
    assert sum(own.low <= 0.5 <= own.high for own in inside) >= 16
    assert np.mean([own.value for own in inside]) == pytest.approx(0.5, abs=0.05)


def test_the_separation_is_the_share_of_pairs_in_the_right_order():
    texts, masked = sentences(30, 0), [words[:7] for words in sentences(30, 1)]
    by_hand = []
    for test in range(3):
        rest = [
            [rows[i] for i in range(30) if i % 3 == (test + step) % 3]
            for rows, step in ((texts, 1), (texts, 2), (masked, 2))
        ]
        detector = Detector.fit(*rest, "#")
        low, high = (detector.log_odds(rows[test::3]) for rows in (texts, masked))
        by_hand.append(np.mean([(a > b) + 0.5 * (a == b) for a in high for b in low]))
    assert separation(texts, masked, "#").value == pytest.approx(np.mean(by_hand), abs=1e-12)


def test_masked_words_are_what_the_model_reads(tiny, tmp_path):
    document, keep = tiny.encode("good film xyz dull"), np.array([True, False, True, False])
    gone = gone_of(tiny)
    assert words_read(document) == ["good", "film", gone, "dull"]
    assert masked_words(tiny, document, keep, "replace") == ["good", gone, gone, gone]
    assert masked_words(tiny, document, keep, "delete") == ["good", gone]
    assert masked_words(tiny, document, keep, "replace:Plot") == ["good", "plot", gone, "plot"]
    (tmp_path / "one.txt").write_text("actor\n", encoding="utf-8")
    assert masked_words(tiny, document, keep, f"marginal:{tmp_path}/one.txt") == ["good", "actor", gone, "actor"]
    box = heedful.wrap(lambda texts: [[1.0, 2.0]] * len(texts))
    assert masked_words(box, box.encode("a b"), np.array([True, False]), "mask") == ["a", gone_of(box)]
