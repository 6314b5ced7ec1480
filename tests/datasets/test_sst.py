import pyarrow as pa
import pytest

from heedful.datasets.sst import Sst
from heedful.errors import BadInput

TREES = [
    "(3 (2 a) (3 (3 lovely) (2 film)))",
    "(1 (2 (2 the) (2 plot)) (1 (2 (2 is) (1 (1 dull) (2 -RRB-))) (3 (2 not) (1 bad))))",
    "(3 (2 not) (1 bad))",
    "(2 (2 a) (2 film))",
    "(0 (2 and\\/or) (0 (2 so) (0 (2 so) (2 so))))",
]


def publish(hub, trees):
    hub("stanfordnlp/sst", "ptb/test/0000.parquet", "refs/convert/parquet", ptb_tree=trees)


def marked(example):
    return [example.text[start:end] for start, end in example.rationale]


def test_the_smallest_phrases_on_the_side_of_the_class_are_marked(hub):
    publish(hub, TREES)
    examples = [(e.text, e.label, marked(e)) for e in Sst().examples("test")]
    assert examples == [
        ("a lovely film", 1, ["lovely"]),
        ("the plot is dull ) not bad", 0, ["dull", "bad"]),
        ("not bad", 1, ["not bad"]),
        ("and/or so so so", 0, ["so so"]),
    ]


@pytest.mark.parametrize("tree", ["", "lovely", "(3 (2 a)", "(7 (2 a) (3 film))", "(3 a))"])
def test_a_tree_that_cannot_be_read_is_one_sentence(hub, tree):
    publish(hub, [tree])
    with pytest.raises(BadInput, match="Row 0 of 0.parquet is not a tree with labels from 0 to 4"):
        Sst().examples("test")


def write_one(write, tokens, starts, ends, labels):
    lists = {"span_start": starts, "span_end": ends, "span_label5": labels}
    columns = {name: pa.array([values], type=pa.list_(pa.int64())) for name, values in lists.items()}
    write("sst/sst_trees_test.parquet", tokens=pa.array([tokens], type=pa.list_(pa.string())), **columns)


def test_lists_of_phrases_are_read_like_the_tree(hub, write):
    publish(hub, TREES[:1])
    there = Sst().examples("test")
    write_one(write, ["a", "lovely", "film"], [0, 1, 2, 1, 0], [1, 2, 3, 3, 3], [2, 3, 2, 3, 3])
    assert Sst().examples("test") == there


@pytest.mark.parametrize(
    ("starts", "ends", "labels"),
    [([0, 0], [1, 3], [2, 3]), ([0], [2], [5]), ([0], [1], [3]), ([0], [2], [3, 3]), ([None], [2], [3]), ([], [], [])],
)
def test_phrases_that_are_not_in_the_sentence_are_one_sentence(write, starts, ends, labels):
    write_one(write, ["a", "film"], starts, ends, labels)
    with pytest.raises(BadInput, match="Row 0 of sst_trees_test.parquet is not a tree"):
        Sst().examples("test")


def test_the_real_sentences_have_the_documented_share_of_marked_words(needs):
    needs("sst")
    for split, size, share, n_whole in (
        ("train", 6920, 26.3, 123),
        ("validation", 872, 26.2, 13),
        ("test", 1821, 26.6, 31),
    ):
        examples = Sst().examples(split)
        counts = [(sum(len(quote.split()) for quote in marked(e)), len(e.text.split())) for e in examples]
        assert len(examples) == size
        assert 100 * sum(a for a, _ in counts) / sum(b for _, b in counts) == pytest.approx(share, abs=0.05)
        assert sum(a == b for a, b in counts) == n_whole


def test_the_real_classes_are_those_of_glue(needs):
    from heedful.datasets.sst2 import Sst2

    needs("sst")
    glue = {e.text: e.label for e in Sst2().examples("validation")}
    assert {e.text.lower(): e.label for e in Sst().examples("validation")} == glue
