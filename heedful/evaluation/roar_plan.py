"""What ROAR trains: the texts with their labels, and which models there are to train."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from heedful.datasets import Dataset, Split
from heedful.datasets.labels import class_numbers
from heedful.datasets.texts import Texts, holds_many, places_by_hash, sample_by_hash, texts_in
from heedful.errors import BadInput, in_short, unknown_name
from heedful.evaluation.replaced_words import MODES, Mode
from heedful.evaluation.roar_curves import CONTROL
from heedful.explainers import Explainer, configure, settings_of
from heedful.family import check_count


@final
class RoarCase(NamedTuple):
    """One model to train: which words were replaced, and from which seed it starts.

    Where no word or every word is replaced, one model serves all curves; its method and mode are empty.
    """

    method: str
    mode: str
    share: float
    seed: int

    @property
    def key(self) -> str:
        """The name of its file."""
        return "-".join(filter(None, (self.mode, self.method, f"{self.share:g}", str(self.seed))))


@final
@dataclass(frozen=True, eq=False)
class RoarPlan:
    """Which models to train; the random control is always among the methods, and 0 among the shares."""

    methods: Sequence[str] | str | None
    shares: Sequence[int | float]
    mode: str
    imputation: str
    seeds: int
    workers: int
    settings: Mapping[str, object]

    def __post_init__(self) -> None:
        check_count("seeds", self.seeds)
        check_count("workers", self.workers)
        if self.mode not in (*MODES, "both"):
            raise unknown_name("mode", self.mode, (*MODES, "both"))
        numbers = [isinstance(share, int | float) and 0 <= share <= 1 for share in self.shares]
        if not numbers or not all(numbers):
            raise BadInput(
                f"shares must be numbers from 0 to 1, such as (0, 0.5, 1); {in_short(self.shares)} was given."
            )
        if self.imputation not in ("mean", "unknown", "delete") and not self.imputation.partition("replace:")[2]:
            raise unknown_name("imputation", self.imputation, ("mean", "unknown", "delete", "replace:WORD"))
        if self.methods is not None:
            self.explainers(self.names(self.methods))

    def names(self, chosen: Sequence[str] | str) -> tuple[str, ...]:
        """The methods, the random control first."""
        return (*dict.fromkeys([CONTROL, *([chosen] if isinstance(chosen, str) else chosen)]),)

    def explainers(self, names: Sequence[str]) -> dict[str, Explainer]:
        """The methods with their settings; what does not exist is refused."""
        if "unit" in self.settings:
            raise BadInput("ROAR replaces words; leave `unit` out.")
        own = settings_of(names, dict(self.settings))
        return {name: configure(name, {**own[name], "unit": "word"}) for name in names}

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes in their order."""
        return tuple(mode for mode in MODES if self.mode in (mode, "both"))

    @property
    def all_shares(self) -> tuple[float, ...]:
        """The shares in their order, from 0."""
        return tuple(sorted({0.0, *map(float, self.shares)}))

    def cases(self, names: Sequence[str], seed: int) -> dict[tuple[Mode, str, float], RoarCase]:
        """The model behind each point of the curves of one seed."""
        return {
            (mode, name, share): RoarCase(name, mode, share, seed) if 0 < share < 1 else RoarCase("", "", share, seed)
            for mode in self.modes
            for name in names
            for share in self.all_shares
        }


@final
@dataclass(frozen=True, eq=False)
class RoarData:
    """Texts of every split and their labels as class numbers."""

    name: str
    texts: Mapping[Split, tuple[str, ...]]
    labels: Mapping[Split, np.ndarray]
    classes: tuple[str, ...]

    @property
    def hash(self) -> str:
        """A hash of all of it."""
        rows = [(split, texts, self.labels[split].tolist()) for split, texts in self.texts.items()]
        return hashlib.sha256(repr((rows, self.classes)).encode("utf-8", "backslashreplace")).hexdigest()


def read_data(
    data: Any, test: Any, n: int | None, text: str | None, label: Any, validates: bool, classes: Sequence[str]
) -> RoarData:
    """The training and test texts, and those that choose the best epoch, if there are to be any.

    Without `test` a fifth of a user's texts is held out, and likewise for validation; which texts depends on their
    hashes alone, and copies stay together.
    """
    named = test is None and (isinstance(data, Dataset) or (isinstance(data, str) and not holds_many(data)))
    parts: dict[Split, Texts] = {"train": texts_in(data, "train", text, label)}
    others: list[Split] = ["test", "validation"] if validates else ["test"]
    for split in others:
        if named:
            parts[split] = texts_in(data, split)
        elif split == "test" and test is not None:
            parts[split] = texts_in(test, "test", text, label if isinstance(label, str | bool) else None)
        else:
            parts["train"], parts[split] = _held_out(parts["train"])
    if n is not None:
        parts = {split: _at(part, sample_by_hash(part.texts, n)) for split, part in parts.items()}
    source = parts["train"]
    names = tuple(classes or source.classes or _distinct(parts.values()))
    for part in parts.values():
        _check_rows(part)
    if len({*source.labels}) < 2 <= len({label for part in parts.values() for label in part.labels}):
        raise BadInput(f"{source.name}: only one class is left to train on; give more different texts, or `test`.")
    if len({*source.labels}) < 2:
        raise BadInput(f"{source.name}: ROAR trains classifiers; give texts of at least two classes.")
    labels: dict[Split, np.ndarray] = {
        split: np.array(class_numbers(part.labels, names, part.classes, part.name)) for split, part in parts.items()
    }
    return RoarData(
        source.name.removesuffix(" (train)"), {split: part.texts for split, part in parts.items()}, labels, names
    )


def _held_out(texts: Texts) -> tuple[Texts, Texts]:
    out = {*places_by_hash(texts.texts, max(1, len({*texts.texts}) // 5))}
    return _at(texts, [n for n in range(len(texts)) if n not in out]), _at(texts, sorted(out))


def _at(texts: Texts, places: Sequence[int]) -> Texts:
    chosen = {name: tuple(getattr(texts, name)[place] for place in places) for name in ("texts", "ids", "labels")}
    return replace(texts, **chosen, rationales=())


def _distinct(parts: Iterable[Texts]) -> list[str]:
    names = {str(label) for part in parts for label in part.labels if label is not None}
    return sorted(names, key=lambda name: (int(name), "") if name.isdecimal() else (-1, name))


def _check_rows(texts: Texts) -> None:
    for row, (text, label) in enumerate(zip(texts.texts, texts.labels, strict=True), start=1):
        if not isinstance(text, str):
            raise BadInput(f"{texts.name}, row {row}: ROAR replaces words of a text; got {in_short(text)}.")
        if label is None:
            raise BadInput(f"{texts.name}, row {row}: ROAR needs a label for every text; add one, or leave it out.")
