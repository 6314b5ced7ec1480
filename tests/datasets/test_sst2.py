import pytest

from heedful.datasets.sst2 import Sst2
from heedful.errors import BadInput

HUB = "stanfordnlp/sst2", "data/{}-00000-of-00001.parquet"


def test_a_folder_and_the_hub_give_the_same(write, hub):
    hub(HUB[0], HUB[1].format("validation"), sentence=["a fine film ", "dull "], label=[1, 0], idx=[0, 1])
    there = Sst2().examples("validation")
    write("sst/glue_sst2_validation.parquet", text=["a fine film", "dull"], label=[1, 0])
    assert Sst2().examples("validation") == there
    assert [(e.text, e.label, e.rationale) for e in there] == [("a fine film", 1, None), ("dull", 0, None)]


def test_a_split_without_labels_is_refused_in_one_sentence(hub):
    hub(HUB[0], HUB[1].format("test"), sentence=["a", "b"], label=[-1, -1])
    with pytest.raises(BadInput, match="The test split of sst2 has no labels.*Use the validation split, or sst"):
        Sst2().examples("test")


def test_a_gap_in_the_labels_is_refused(write):
    write("sst/glue_sst2_test.parquet", text=["a", "b"], label=[-1, 1])
    with pytest.raises(BadInput, match="labels 1 of its 2 rows with something other than 0 to 1, such as -1"):
        Sst2().examples("test")


def test_the_real_splits_have_the_published_sizes(needs):
    needs("sst")
    sizes = {split: len(Sst2().examples(split)) for split in ("train", "validation", "test")}
    assert sizes == {"train": 67_349, "validation": 872, "test": 1_821}
