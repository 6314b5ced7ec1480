"""Shape and type checks for the whole package, and the small models every test shares."""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Before torch is imported: the test processes share the cores, and threads beyond them only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import jaxtyping
import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("heedful", "beartype.beartype")
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

import torch  # noqa: E402

from heedful.cli.app import main  # noqa: E402
from heedful.models.load import load  # noqa: E402
from heedful.models.network import Config, Network  # noqa: E402
from heedful.models.single_layer import SingleLayer  # noqa: E402
from heedful.models.training import initial_weights  # noqa: E402
from heedful.models.vocabulary import Vocabulary  # noqa: E402

WORDS = (
    *("the", "film", "was", "good", "bad", "very", "not", "dull", "bright", "story", "a", "an", "and", "but"),
    *("plot", "actor", ".", ",", "!", "?"),
)


def tiny_model(seed: int = 0, **changes: object) -> SingleLayer:
    """A single-layer model in float64 whose attention is far from uniform, with weights nobody trained."""
    sizes = {"n_heads": 3, "T_max": 16, "d_e": 10, "d_att": 6, "d_out": 5, "n_classes": 3, "bias": True}
    config = Config(**{**sizes, **changes})
    vocabulary = Vocabulary(("[cls]", "[unk]", *WORDS))
    weights = initial_weights(config, len(vocabulary), seed)
    rng = torch.Generator().manual_seed(seed + 1)
    loud = {name: torch.randn(w.shape, generator=rng) if name.startswith("b") else 8 * w for name, w in weights.items()}
    loud["W_e"] = weights["W_e"]
    names = ["negative", "positive", "neutral", "other"][: config.n_classes]
    return SingleLayer(Network(config, loud).double(), vocabulary, names)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="one case of every parametrised test, none that is slow")


SLOW_FIXTURES = {"numbers", "site", "shap"}
"""The numbers of an experiment, the built documentation, a package that takes seconds to import."""


def is_slow(item: pytest.Item) -> bool:
    """Whether a test is marked slow or needs a fixture that takes seconds."""
    return item.get_closest_marker("slow") is not None or bool(SLOW_FIXTURES & set(getattr(item, "fixturenames", ())))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --quick, keep the first case of every test that is not slow; choose the cases with shape and type checks."""
    quick = config.getoption("quick")
    if quick:
        first: dict[str, pytest.Item] = {}
        for item in items:
            if not is_slow(item):
                first.setdefault(item.nodeid.partition("[")[0], item)
        config.hook.pytest_deselected(items=[item for item in items if item not in set(first.values())])
        items[:] = first.values()
    seen: set[tuple[str, str, str]] = set()
    for item in items:
        values = parameter_values(item)
        item.stash[CHECKED] = not (quick or is_slow(item)) and (not values or not values <= seen)
        seen |= values


CHECKED = pytest.StashKey[bool]()
"""Whether a case runs with shape and type checks, which take half of its time. Slow tests repeat calls of others."""


def parameter_values(item: pytest.Item) -> set[tuple[str, str, str]]:
    """The parameters of a case; each value of each parameter of a test is seen once with checks."""
    test, brackets, _ = item.nodeid.partition("[")
    parameters = item.callspec.params if brackets and isinstance(item, pytest.Function) else {}
    return {(test, name, repr(value)) for name, value in parameters.items()}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Runs a case with shape and type checks, or without them."""
    jaxtyping.config.update("jaxtyping_disable", not item.stash[CHECKED])
    return (yield)


@pytest.fixture(scope="session")
def tiny() -> SingleLayer:
    return tiny_model()


@pytest.fixture(scope="session")
def paper() -> SingleLayer:
    model = load("paper")
    assert isinstance(model, SingleLayer)
    return model


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = os.environ.get("HEEDFUL_DATA")
    if not folder or not Path(folder, "imdb", "test.parquet").exists():
        pytest.skip(reason="needs the real IMDB reviews: name a folder with imdb/*.parquet in HEEDFUL_DATA")
    return Path(folder)


@pytest.fixture
def heedful_command(monkeypatch, capsys):
    """Runs a command; gives its exit code, standard output and standard error."""

    def run(*words, stdin=None):
        monkeypatch.setattr(sys, "argv", ["heedful", *map(str, words)])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return stopped.value.code or 0, printed.out, printed.err

    return run
