import pytest

from heedful.datasets.ag_news import AgNews
from heedful.errors import BadInput


@pytest.fixture
def small(write):
    write(
        "ag_news_partial/train_subset_10k.parquet",
        text=[f"news {n}" for n in range(8)],
        label=[n % 4 for n in range(8)],
    )
    return write("ag_news_partial/test.parquet", text=["a", "b"], label=[3, 0])


def test_validation_texts_are_held_out_of_the_training_half(small):
    data = AgNews(n_validation=3)
    train, validation = data.examples("train"), data.examples("validation")
    assert (len(train), len(validation)) == (5, 3)
    assert {e.text for e in train}.isdisjoint(e.text for e in validation)
    assert train != AgNews(n_validation=3, split_seed=1).examples("train")
    assert [(e.text, e.label, e.rationale) for e in data.examples("test")] == [("a", 3, None), ("b", 0, None)]


def test_the_hub_has_both_halves(hub):
    for half in ("train", "test"):
        hub(
            "fancyzhx/ag_news",
            f"data/{half}-00000-of-00001.parquet",
            text=[f"{half} {n}" for n in range(3)],
            label=[0, 1, 2],
        )
    data = AgNews(n_validation=1)
    assert [len(data.examples(split)) for split in ("train", "validation", "test")] == [2, 1, 3]


def test_a_label_that_is_no_class_is_refused(small, write):
    write("ag_news_partial/test.parquet", text=["a"], label=[4])
    with pytest.raises(BadInput, match="other than 0 to 3, such as 4"):
        AgNews().examples("test")


def test_settings_out_of_range_are_refused():
    with pytest.raises(BadInput, match="n_validation ≥ 1"):
        AgNews(n_validation=0)


def test_the_real_test_half_is_balanced(needs):
    needs("ag_news_partial")
    labels = [e.label for e in AgNews().examples("test")]
    assert [labels.count(label) for label in range(4)] == [1900] * 4
