"""Laws that bind every experiment."""

import inspect
from typing import get_args

import pytest

import heedful
from heedful.experiments import ExperimentPart

EXPERIMENTS = heedful.experiments()


@pytest.mark.parametrize("member", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_an_experiment_says_what_it_is(member):
    assert member.name == member.__module__.rpartition(".")[2].replace("_", "-")
    assert member.part in get_args(ExperimentPart)
    assert len((inspect.getdoc(member) or "").splitlines()[0]) <= 80
    assert member.title
    assert member.source


@pytest.mark.parametrize("member", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_an_experiment_has_its_test(member, request):
    folder, _, name = member.__module__.removeprefix("heedful.").replace(".", "/").rpartition("/")
    mirror = f"tests/{folder}/test_{name}.py"
    assert (request.config.rootpath / mirror).exists()


def test_the_paper_comes_first():
    from heedful.experiments.run import experiments_in_order

    parts = [member.part for member in experiments_in_order().values()]
    assert parts == sorted(parts, key=get_args(ExperimentPart).index)
    assert set(parts) == set(get_args(ExperimentPart))
