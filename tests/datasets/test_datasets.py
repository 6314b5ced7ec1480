"""The contract of data sets and the catalogue."""

from dataclasses import fields
from typing import get_args

import heedful
from heedful.datasets import Dataset, Example, Split


def test_the_package_is_its_own_catalogue():
    catalogue = heedful.datasets()
    assert {"imdb", "sst2", "ag-news"} <= set(catalogue)
    for name, member in catalogue.items():
        assert issubclass(member, Dataset)
        assert member.name == name
        assert member.__module__ == f"heedful.datasets.{name.replace('-', '_')}"
        assert len(set(member.classes)) == len(member.classes) > 1


def test_every_setting_has_a_default():
    for member in heedful.datasets().values():
        assert member() == member(**{field.name: field.default for field in fields(member)})


def test_an_example_has_no_rationale_unless_somebody_marked_it():
    assert Example("a film", 1).rationale is None
    assert get_args(Split) == ("train", "validation", "test")
