import pytest

from heedful.datasets.esnli import Esnli
from heedful.document import Pair
from heedful.errors import BadInput

HUB = "esnli/esnli", "plain_text/test/0000.parquet", "refs/convert/parquet"


def test_labels_are_words_in_a_folder_and_numbers_on_the_hub(write, hub):
    texts = {"premise": ["a man sleeps"] * 3, "hypothesis": ["he rests", "he dreams", "he runs"]}
    hub(*HUB, **texts, label=[0, 1, 2])
    there = Esnli().examples("test")
    words = ["entailment", "neutral", "contradiction"]
    write("esnli_dev_test/test.parquet", **texts, label=words, explanation_1=["because"] * 3)
    assert Esnli().examples("test") == there
    assert [e.label for e in there] == [0, 1, 2]
    assert there[1].text == Pair("a man sleeps", "he dreams")
    assert all(e.rationale is None for e in there)


def test_a_label_that_is_no_class_is_refused(write, hub):
    hub(*HUB, premise=["a"], hypothesis=["b"], label=[-1])
    with pytest.raises(BadInput, match="such as -1"):
        Esnli().examples("test")
    write("esnli_dev_test/test.parquet", premise=["a"], hypothesis=["b"], label=["-"])
    with pytest.raises(BadInput, match="test.parquet has labels that are not classes, such as '-'"):
        Esnli().examples("test")


def test_the_real_pairs_have_the_published_sizes(needs):
    needs("esnli_dev_test")
    assert [len(Esnli().examples(split)) for split in ("validation", "test")] == [9_842, 9_824]
    with pytest.raises(BadInput, match="without esnli_dev_test/train.parquet"):
        Esnli().examples("train")
