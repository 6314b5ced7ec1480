"""Laws that bind every experiment."""

import ast
import inspect
import sys
from pathlib import Path
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


@pytest.mark.parametrize("member", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_an_experiment_does_not_import_another(member):
    others = {other.__module__ for other in EXPERIMENTS.values()} - {member.__module__}
    assert not imports(Path(sys.modules[member.__module__].__file__)) & others


def test_no_helper_imports_an_experiment():
    members = {member.__module__ for member in EXPERIMENTS.values()}
    files = {Path(sys.modules[module].__file__) for module in members}
    for path in Path(heedful.experiments.__file__).parent.rglob("*.py"):
        if path not in files:
            assert not imports(path) & members, path


def test_theory_imports_nothing_of_ours_but_theory():
    for path in (Path(heedful.__file__).parent / "theory").glob("*.py"):
        ours = {name for name in imports(path) if name.startswith("heedful")}
        assert all(name.startswith("heedful.theory") for name in ours), path


def imports(path: Path) -> set[str]:
    """Every module that a file names in an import, and every name from it as if it were a module."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names
