"""The contract of experiments: what a subclass must write, and the catalogue that finds it."""

import pkgutil
from dataclasses import FrozenInstanceError, dataclass

import pytest

import heedful
import heedful.experiments
from heedful.experiments import Experiment


def test_an_experiment_must_measure_claim_and_draw():
    for missing in ("measure", "claims", "draw"):
        methods = {name: lambda self, _: [] for name in ("measure", "claims", "draw") if name != missing}
        with pytest.raises(TypeError, match=missing):
            type("Unfinished", (Experiment,), methods)()


def test_an_experiment_is_a_frozen_value():
    @dataclass(frozen=True)
    class Small(Experiment):
        n: int = 3

        def measure(self, workspace):
            return {"rows": [{"n": self.n}]}

        def claims(self, numbers):
            return []

        def draw(self, numbers):
            return {}

    assert Small() == Small(3)
    assert not Small.smaller_when_quick
    with pytest.raises(FrozenInstanceError):
        Small().n = 4  # pyright: ignore[reportAttributeAccessIssue]


def test_the_catalogue_is_every_experiment_of_the_folders_that_python_itself_finds():
    modules = pkgutil.walk_packages(heedful.experiments.__path__, "heedful.experiments.")
    classes = set()
    for module in modules:
        namespace = vars(__import__(module.name, fromlist=["_"]))
        classes |= {
            thing
            for thing in namespace.values()
            if isinstance(thing, type) and issubclass(thing, Experiment) and thing.__module__ == module.name
        }
    assert set(heedful.experiments().values()) == classes
    assert {name: member.name for name, member in heedful.experiments().items()} == {
        member.name: member.name for member in classes
    }
