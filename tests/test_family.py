"""Catalogues, and settings as users give them."""

from dataclasses import fields

import pytest

from heedful.datasets import Dataset
from heedful.datasets.imdb import Imdb
from heedful.errors import BadInput, UnknownName
from heedful.explainers import Explainer
from heedful.explainers.lime import Lime
from heedful.family import build, choices_of, members, parse_words, setting_types, split_settings
from heedful.models.network import Config


def test_every_concrete_class_of_a_folder_is_found_by_its_name():
    catalogue = members("heedful.explainers", Explainer)
    assert {"lime", "attention-mean", "gradient-x-input"} <= set(catalogue)
    assert all(member.name == name for name, member in catalogue.items())
    assert Explainer not in catalogue.values()


def test_families_do_not_mix():
    assert set(members("heedful.datasets", Dataset)) == {
        *("ag-news", "dyck", "eraser-movies", "esnli", "histogram", "imdb", "questions", "sst", "sst2"),
        *("tiny-imagenet-16c", "topics"),
    }
    assert members("heedful.explainers", Dataset) == {}


def test_strings_become_the_field_s_type():
    lime = build(Lime, "lime", {"n_samples": "100", "ridge": "0.5", "absence": "delete", "unit": "type"})
    assert lime == Lime(unit="type", n_samples=100, absence="delete", ridge=0.5)
    assert build(Config, "model", {"bias": "true"}).bias is True


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_samples": "many"}, "n_samples must be a whole number or auto; 'many' was given"),
        ({"n_samples": 10.5}, "n_samples must be a whole number"),
        ({"n_samples": float("inf")}, "n_samples must be a whole number"),
        ({"ridge": None}, "ridge must be a number"),
        ({"kernel_width": 0}, "kernel_width from 1e-6 to 1e6"),
        ({"kernel_width": "nan"}, "kernel_width from 1e-6 to 1e6"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        build(Lime, "lime", settings)


@pytest.mark.parametrize("settings", [{"absence": "vanish"}, {"unit": "letter"}, {"nsamples": 3}])
def test_an_unknown_name_lists_the_known_ones(settings):
    with pytest.raises(UnknownName, match="Known: "):
        build(Lime, "lime", settings)


def test_settings_are_read_from_words():
    words = ["--n-samples", "10", "a film", "--absence=delete"]
    assert parse_words(words) == (["a film"], {"n_samples": "10", "absence": "delete"})
    with pytest.raises(BadInput, match="needs a value"):
        parse_words(["--seed"])


def test_every_member_gets_the_settings_that_it_has():
    shared = {"n_samples": 5, "split_seed": 1}
    assert split_settings(shared, [Lime, Imdb]) == [{"n_samples": 5}, {"split_seed": 1}]
    with pytest.raises(UnknownName, match="There is no setting 'nsamples'; did you mean 'n_samples'"):
        split_settings({"nsamples": 5}, [Lime, Imdb])


def test_the_choices_of_a_setting_are_those_that_build_accepts():
    settings = {field.name: field for field in fields(Lime)}
    assert choices_of(settings["ridge"]) == []
    assert choices_of(settings["n_samples"]) == ["a whole number", "auto"]
    for unit in choices_of(settings["unit"]):
        assert build(Lime, "lime", {"unit": unit}).unit == unit
    assert set(setting_types(Lime)) == set(settings)


def test_a_value_of_a_setting_with_a_plural_name_is_refused_in_a_sentence():
    from heedful.explainers.attention import Attention

    with pytest.raises(UnknownName, match="There is no value of rows 'column'"):
        build(Attention, "attention", {"rows": "column"})
