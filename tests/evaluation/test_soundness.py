from itertools import combinations

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput


def classifier(rule):
    """A function whose class 1 is a rule over the words; its score differs where the class does not."""
    return heedful.wrap(
        lambda texts: [[1.0 - rule(set(t.split())), rule(set(t.split()))] for t in texts], returns="scores"
    )


def minimal_sets(rule, words):
    """The minimal sufficient sets, from their definition."""
    full = set(words)
    sets = [set(c) for n in range(len(words) + 1) for c in combinations(words, n)]
    own = rule(full) > 0.5
    enough = [s for s in sets if all((rule(t) > 0.5) == own for t in sets if s <= t)]
    return [s for s in enough if not any(t < s for t in enough)]


def rule(words):
    # c matters to the score, never to the class.
    return 0.6 * ("a" in words or {"b", "d"} <= words) + 0.2 * ("c" in words) + 0.1 * ({"e"} <= words)


def test_relevant_units_are_those_of_the_minimal_sufficient_sets_and_others_with_a_score_are_unsound():
    words = ["a", "b", "c", "d", "e"]
    result = heedful.soundness(classifier(rule), " ".join(words), target=1)
    relevant = set().union(*minimal_sets(rule, words))
    assert (
        {u for u, r in zip(result.explanation.units, result.relevant, strict=True) if r} == relevant == {"a", "b", "d"}
    )
    assert result.unsound == ("c", "e")


def test_scores_of_relevant_units_alone_are_sound():
    result = heedful.soundness(classifier(lambda words: float("a" in words)), "a b c", "leave-one-out")
    assert result.relevant.tolist() == [True, False, False]
    assert result.unsound == ()
    assert np.isfinite(result.explanation.scores).all()


def test_a_long_text_is_refused():
    with pytest.raises(BadInput, match="at most 14 units; the text has 15"):
        heedful.soundness(classifier(rule), " ".join("abcdefghijklmno"), "leave-one-out")
