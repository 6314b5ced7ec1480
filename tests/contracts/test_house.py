"""The rules of the house: where files go, how long they may be, what has a docstring and a test, who imports whom."""

import ast
import tomllib
from collections import defaultdict
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import grimp
import numpy as np
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "heedful"
MODULES = sorted(PACKAGE.rglob("*.py"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


@cache
def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def is_overload(node):
    return any(isinstance(decorator, ast.Name) and decorator.id == "overload" for decorator in node.decorator_list)


def public_definitions(path):
    """Public classes and functions of the module, and the public methods of its public classes."""
    for node in parse(path).body:
        if isinstance(node, DEFINITIONS) and not node.name.startswith("_") and not is_overload(node):
            yield node.name, node
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, FUNCTIONS) and not inner.name.startswith("_"):
                    yield f"{node.name}.{inner.name}", inner


def has_code(path):
    """Whether the module defines or does anything: a docstring alone is no code."""
    body = parse(path).body
    is_docstring = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return len(body) > (1 if is_docstring else 0)


def test_at_most_six_modules_stand_at_the_root():
    loose = [path.name for path in PACKAGE.glob("*.py") if path.stem not in ("__init__", "__main__")]
    assert len(loose) <= 6, loose


def test_no_folder_has_more_than_thirty_modules():
    n_modules = defaultdict(int)
    for path in MODULES:
        n_modules[name_of(path.parent)] += path.stem != "__init__"
    assert {folder: n for folder, n in n_modules.items() if n > 30} == {}


def test_no_module_is_longer_than_three_hundred_lines():
    n_lines = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: n for name, n in n_lines.items() if n > 300} == {}


def test_fewer_than_fifteen_functions_are_longer_than_forty_lines():
    functions = [
        (name_of(path), node.name, node.end_lineno - node.lineno + 1)
        for path in MODULES
        for node in ast.walk(parse(path))
        if isinstance(node, FUNCTIONS)
    ]
    long = [function for function in functions if function[2] > 40]
    assert len(long) < 15, sorted(long, key=lambda function: -function[2])


DOCUMENTED = 0.85
"""The share of public definitions that must have a docstring."""


def test_public_definitions_have_docstrings():
    bare, n = [], 0
    for path in MODULES:
        assert ast.get_docstring(parse(path)), f"{name_of(path)} has no docstring"
        for name, node in public_definitions(path):
            n += 1
            bare += [] if ast.get_docstring(node) else [f"{name_of(path)}: {name}"]
    assert len(bare) <= (1 - DOCUMENTED) * n, f"{len(bare)} of {n}: {bare}"


def test_no_code_calls_hasattr():
    calls = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr"
    ]
    assert calls == []


WRITERS = ("write_text", "write_bytes", "save_file", "savefig", "ParquetWriter")
"""Functions that write a file in place; a full disk or a kill would leave half of it."""
IN_MEMORY = "heedful/render/chart.py"


def called(node):
    """The last name of what a call calls."""
    return getattr(node.func, "attr", getattr(node.func, "id", None)) if isinstance(node, ast.Call) else None


def handed_over(tree):
    """Every node inside of a function that is handed to the atomic write."""
    calls = [node for node in ast.walk(tree) if called(node) in ("write_atomically", "write_file")]
    arguments = [argument for call in calls for argument in call.args]
    names = {argument.id for argument in arguments if isinstance(argument, ast.Name)}
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS) and node.name in names]
    return {inner for node in (*arguments, *functions) for inner in ast.walk(node)}


def test_every_file_is_written_atomically():
    places = []
    for path in (*MODULES, *sorted((ROOT / "studies").rglob("*.py"))):
        if name_of(path) not in ("heedful/run_folder.py", IN_MEMORY):
            atomic = handed_over(parse(path))
            places += [
                f"{name_of(path)}:{node.lineno} {called(node)}"
                for node in ast.walk(parse(path))
                if called(node) in WRITERS and node not in atomic
            ]
    assert places == []


def mirror_of(path):
    """The test file that belongs to a module: `heedful/a/b.py` → `tests/a/test_b.py`; a package to `test_a.py`."""
    folder = ROOT / "tests" / path.parent.relative_to(PACKAGE)
    return folder / f"test_{path.parent.name if path.stem == '__init__' else path.stem.strip('_')}.py"


def test_every_module_has_a_test_at_its_own_path():
    assert [name_of(path) for path in MODULES if has_code(path) and not mirror_of(path).exists()] == []


def test_no_two_public_things_share_a_name():
    homes = defaultdict(list)
    for path in MODULES:
        # A command has the name of the function that it calls.
        if name_of(path).startswith("heedful/cli/"):
            continue
        for name, _ in public_definitions(path):
            homes[name] += [name_of(path)] if "." not in name else []
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def lazy_imports():
    """Imports against the direction of flow that pyproject.toml allows; they are made inside a method."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract for contract in contracts if contract["type"] == "layers")
    return [tuple(line.split(" -> ")) for line in layers["ignore_imports"]]


def test_no_modules_import_each_other_in_a_circle():
    graph = grimp.build_graph("heedful", exclude_type_checking_imports=True, cache_dir=None)
    allowed = lazy_imports()
    modules = sorted(graph.modules)
    number = {module: index for index, module in enumerate(modules)}
    imports = np.zeros((len(modules), len(modules)), dtype=bool)
    for module in modules:
        for other in graph.find_modules_directly_imported_by(module):
            if not any(fnmatchcase(module, one) and fnmatchcase(other, two) for one, two in allowed):
                imports[number[module], number[other]] = True
    _, component = connected_components(imports, connection="strong")
    circles = [[modules[index] for index in np.flatnonzero(component == n)] for n in set(component.tolist())]
    assert [circle for circle in circles if len(circle) > 1] == []
