import pytest

from heedful.errors import BadInput, UnknownName
from heedful.explainers.lime import Lime
from heedful.family import build, from_words
from heedful.models.network import Config


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
        ({"kernel_width": 0}, "kernel_width > 0"),
        ({"kernel_width": "nan"}, "kernel_width > 0"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        build(Lime, "lime", settings)


@pytest.mark.parametrize("settings", [{"absence": "vanish"}, {"unit": "letter"}, {"nsamples": 3}])
def test_a_name_that_does_not_exist_is_answered_with_those_that_do(settings):
    with pytest.raises(UnknownName, match="Known: "):
        build(Lime, "lime", settings)


def test_settings_are_read_from_words():
    words = ["--n-samples", "10", "a film", "--absence=delete"]
    assert from_words(words) == (["a film"], {"n_samples": "10", "absence": "delete"})
    with pytest.raises(BadInput, match="needs a value"):
        from_words(["--seed"])
