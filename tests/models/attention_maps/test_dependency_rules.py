import pytest

from heedful.models.attention_maps.dependency_rules import parse_by_rules


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("The very good film was dull.", {("The", "det", "film")}),
        ("It will not really disappoint you", {("It", "subject", "disappoint"), ("will", "aux", "disappoint")}),
        ("a story of great courage , but", {("a", "det", "story"), ("of", "prep", "courage")}),
        ("I didn't like the plot", {("I", "subject", "like"), ("n't", "neg", "like"), ("the", "det", "plot")}),
        ("in the old house", {("in", "prep", "house"), ("the", "det", "house")}),
        ("she , too , laughed", set()),
        ("", set()),
        ("the", set()),
    ],
)
def test_words_of_closed_lists_depend_on_the_word_that_the_rules_say(text, pairs):
    words = parse_by_rules(text)
    found = {
        (text[w.start : w.end], w.relation, text[words[w.head].start : words[w.head].end]) for w in words if w.relation
    }
    assert pairs <= found if pairs else found == set()


def test_a_word_without_a_relation_depends_on_itself():
    words = parse_by_rules("film and plot")
    assert [(word.head, word.relation) for word in words] == [(0, ""), (1, ""), (2, "")]
