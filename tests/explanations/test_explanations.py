from heedful.explanations import Explanations
from heedful.explanations.refusal import Refusal


def refused(n):
    items = tuple(Refusal(f"text {i}", "a reason", "lime") for i in range(n))
    return Explanations(items, tuple(f"id-{i}" for i in range(n)), ("no", "yes"), (0,) * n, (1,) * n, n)


def test_explanations_are_a_sequence():
    explanations = refused(3)
    assert len(explanations) == 3
    assert explanations[-1].text == "text 2"
    assert [item.text for item in explanations[1:]] == ["text 1", "text 2"]
    assert explanations[1:].ids == ("id-1", "id-2")


def test_the_summary_counts_refusals_and_texts_that_were_not_reached():
    explanations = refused(2)
    assert repr(explanations) == "<explanations of 2 texts, 2 refused>"
    stopped = Explanations(explanations.items, explanations.ids, (), (None,) * 2, (None,) * 2, 9)
    assert repr(stopped) == "<explanations of 2 of 9 texts, 2 refused>"
