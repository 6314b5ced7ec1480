from heedful.datasets import Dataset
from heedful.explainers import Explainer
from heedful.family import members


def test_every_concrete_class_of_a_folder_is_found_by_its_name():
    found = members("heedful.explainers", Explainer)
    assert {"lime", "attention-mean", "gradient-x-input"} <= set(found)
    assert all(member.name == name for name, member in found.items())
    assert Explainer not in found.values()


def test_families_do_not_mix():
    assert set(members("heedful.datasets", Dataset)) == {
        *("ag-news", "eraser-movies", "esnli", "imdb", "sst", "sst2", "tiny-imagenet-16c"),
    }
    assert members("heedful.explainers", Dataset) == {}
