"""What a model loses without some features, beside random features that are as often active."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.datasets.labels import class_numbers
from heedful.datasets.texts import texts_of
from heedful.errors import BadInput, in_short
from heedful.family import check_count, check_seed
from heedful.features.clamp import changeable
from heedful.features.dictionary import Dictionary
from heedful.models import Model
from heedful.models.question import Request, ask
from heedful.progress import Progress, progress_of, show_progress
from heedful.statistics.quantity import Quantity, mean_over_texts

_NEAREST = 20
"""A random feature is one of so many whose density is nearest."""
_LEVEL = 0.05
"""The largest p-value of a verdict that features matter more than random ones."""


@final
@dataclass(frozen=True, eq=False)
class Ablation:
    """The outputs of a model for some texts: as it is, without some features, and without random features.

    Row 0 of `outputs` and `right` is the whole model, row 1 the model without the features, the others are one per
    random set. A random set has as many features; each is one of the 20 whose density is nearest to that of a feature.
    """

    features: tuple[int, ...]
    random: tuple[tuple[int, ...], ...]
    target: str
    outputs: Float[np.ndarray, "run text"]
    """The target of every text."""
    right: Bool[np.ndarray, "run text"] | None
    """Whether the predicted class is the label; None without labels."""

    @property
    def accuracy(self) -> Float[np.ndarray, "run"] | None:
        """The share of texts whose predicted class is the label, in every run."""
        return None if self.right is None else self.right.mean(axis=1)

    def changes(self, of: str = "output") -> tuple[Quantity, Quantity, Quantity]:
        """The change without the features, the mean change over the random sets, and how much larger the first is.

        `of` is "output" or "accuracy". The last is |mean change| less the mean |mean change| of the random sets: a
        change may go either way, and sets that change the output in opposite ways must not cancel. Intervals are over
        texts, for these random sets; how much sets differ is in `p_value`.
        """
        changes = self._values(of)[1:] - self._values(of)[0]
        sizes = np.sign(changes.mean(axis=1, keepdims=True)) * changes
        return (
            mean_over_texts(changes[0]),
            mean_over_texts(changes[1:].mean(axis=0)),
            mean_over_texts(sizes[0] - sizes[1:].mean(axis=0)),
        )

    def p_value(self, of: str = "output") -> float:
        """(1 + random sets that change the mean at least as much) / (1 + random sets)."""
        values = self._values(of)
        sizes = np.abs((values[1:] - values[0]).mean(axis=1))
        return float((sizes >= sizes[0] - 1e-12).sum() / len(sizes))

    def _values(self, of: str) -> Float[np.ndarray, "run text"]:
        values = {"output": self.outputs, "accuracy": self.right}.get(of)
        if values is None:
            raise BadInput(f'of is "output", or with labels "accuracy"; {in_short(of)} was given.')
        return values.astype(np.float64)

    @property
    def verdict(self) -> str:
        """Whether the features matter more than random ones, by the accuracy or, without labels, by the output."""
        return self.verdict_on("output" if self.right is None else "accuracy")

    @property
    def summary(self) -> str:
        """The verdict by the accuracy, if there are labels, and by the output."""
        return "\n".join(map(self.verdict_on, ("output",) if self.right is None else ("accuracy", "output")))

    def verdict_on(self, of: str) -> str:
        """The same by the "output" or the "accuracy".

        They do if the interval of the difference in size is above 0, and at most 5 % of the sets, the features' own
        among them, change the mean as much.
        """
        own, others, more = self.changes(of)
        what = f"{len(self.features)} features" if len(self.features) > 1 else "the feature"
        named, p = "accuracy" if of == "accuracy" else self.target, self.p_value(of)
        sizes = f"{own:+.3f} against {others:+.3f} without {len(self.random)} random sets"
        if 1 / (1 + len(self.random)) > _LEVEL:
            return f"Removing {what} changes {named} by {sizes}, too few for a verdict; 19 are needed."
        if more.low > 0 and p <= _LEVEL:
            return f"Removing {what} changes {named} more than removing random ones: {sizes} (p = {p:.2g})."
        return (
            f"Removing {what} does not change {named} measurably more than removing random ones: {sizes} (p = {p:.2g})."
        )

    def as_dict(self) -> dict[str, Any]:
        """The changes with intervals and p-values, ready for JSON: without the features, random, and the difference."""
        names = ("output",) if self.right is None else ("output", "accuracy")
        own = {
            of: {
                **dict(zip(("change", "random", "more"), (change.plain() for change in self.changes(of)), strict=True)),
                "p": self.p_value(of),
            }
            for of in names
        }
        about = {"features": list(self.features), "target": self.target, "n_texts": self.outputs.shape[1]}
        return {**about, "n_random": len(self.random), **own}

    def __repr__(self) -> str:
        return f"<{self.verdict}>"


def effect(
    dictionary: Dictionary,
    features: Iterable[int],
    texts: Sequence[Any],
    labels: Sequence[Any] | Literal[False] | None = None,
    target: Request = None,
    *,
    model: Model | None = None,
    n_random: int = 20,
    seed: int = 0,
    progress: Progress | bool | None = show_progress,
) -> Ablation:
    """What a model's outputs and accuracy lose when features are held at 0, beside random features.

    `labels` are classes by number or name; those in a file are not read. The `target` is an output of the model, by
    default the predicted class. `n_random` sets are drawn of the features of nearest density.
    """
    chosen, labels = dictionary.check_features(features), None if labels is False else labels
    base, data = changeable(dictionary, model), texts_of(texts, label=False if labels is None else labels)
    if not data.texts:
        raise BadInput("There are no texts; give at least one.")
    numbers = None if labels is None else class_numbers(data.labels, base.classes)
    if numbers is not None and None in numbers:
        raise BadInput("Some texts have no label; leave these texts out, or all labels.")
    random, question = _random_sets(dictionary, chosen, n_random, seed), ask(base, data.texts, target)
    rows = [question.logits]
    with progress_of(progress, "sets of features") as watch:
        for done, removed in enumerate((chosen, *random), start=1):
            with dictionary.ablate(removed, base):
                rows.append(base.logits(question.documents))
            watch(done, 1 + n_random)
    outputs = np.array([[t.of(row[None])[0] for t, row in zip(question.targets, run, strict=True)] for run in rows])
    names = {str(each) for each in question.targets}
    return Ablation(
        chosen,
        random,
        names.pop() if len(names) == 1 else "the output of the predicted class",
        outputs,
        None if numbers is None else np.stack([run.argmax(axis=1) == numbers for run in rows]),
    )


def _random_sets(
    dictionary: Dictionary, features: Sequence[int], n_sets: int, seed: int
) -> tuple[tuple[int, ...], ...]:
    """Sets of other features of nearly the same density, none twice in a set."""
    check_seed(seed)
    check_count("n_random", n_sets, 1, 10_000)
    if not features or dictionary.width < 2 * len(features):
        raise BadInput(f"Give 1 to {dictionary.width // 2:,} features, so that as many others are left.")
    if not dictionary.density.any():
        raise BadInput("It is not known how often each feature is active; dictionary.measured(rows) determines it.")
    rng, density = np.random.default_rng([seed, *features]), dictionary.density.double().cpu().numpy()
    others = np.setdiff1d(np.arange(dictionary.width), features)
    sets = []
    for _ in range(n_sets):
        drawn: list[int] = []
        for feature in features:
            left = np.setdiff1d(others, drawn)
            nearest = left[np.argsort(np.abs(density[left] - density[feature]), kind="stable")[:_NEAREST]]
            drawn.append(int(rng.choice(nearest)))
        sets.append(tuple(drawn))
    return tuple(sets)
