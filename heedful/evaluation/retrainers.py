"""How ROAR trains: a function of the user, a model of `heedful train` from new weights, or many at once."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, final
from weakref import WeakKeyDictionary

import numpy as np

from heedful.datasets import Split
from heedful.datasets.labels import class_numbers
from heedful.errors import BadInput, Unsupported, describe_error, in_short
from heedful.evaluation.replaced_words import ReplacedTexts, WordTexts
from heedful.family import check_count
from heedful.models import Model, check_model
from heedful.models.fitting.fit import FitRecipe, Fitting
from heedful.models.fitting.fresh import check_trained_here, fresh
from heedful.models.fitting.many_at_once import (
    GONE,
    Ids,
    Labels,
    TrainingCase,
    padded_ids,
    train_many,
    word_frequencies,
)
from heedful.models.load import wrap
from heedful.models.recording import Recordable
from heedful.models.single_layer import SingleLayer
from heedful.models.training import Recipe, recipe_settings

Train = Callable[[list[str], list[int], int], Any]
"""Trains on texts and their class numbers with a seed, and returns a model, or what `heedful.wrap` makes one of."""
_UNKNOWN = "[UNK]"


RoarTraining = tuple[Mapping[Split, ReplacedTexts], int]
"""The texts of one training, with their words replaced, and its seed."""


class Retrainer(ABC):
    """Trains models on changed texts and tests each on texts that were changed in the same way."""

    explained: Any
    """The model that is trained again and explained; None for one that is trained on the whole texts, or given."""
    at_once: int = 1
    """How many models are trained together."""
    validates: ClassVar[bool] = False
    """Whether it needs texts to choose the best epoch."""
    usual_imputation: ClassVar[str] = "unknown"
    """What replaces a word by default."""

    def imputation(self, given: str | None) -> str:
        """What replaces a word, by default or as given; what cannot be is refused."""
        if given == "mean" != self.usual_imputation:
            raise BadInput(
                "Only the paper's model is trained on the mean vector; give unknown, delete or replace:WORD."
            )
        return given or self.usual_imputation

    def explained_or(self, given: Model | None) -> Model | None:
        """The explained model, which is given only where none is trained again."""
        if given is None:
            return self.explained
        check_model(given)
        if self.explained is not None:
            raise BadInput("A model that is trained again is explained itself; leave `model` out.")
        return given

    @abstractmethod
    def claim(self) -> dict[str, Any]:
        """What its results depend on, ready for JSON."""

    @abstractmethod
    def accuracies(
        self, trainings: Sequence[RoarTraining], imputation: str, classes: Sequence[str], watch: Callable[[float], None]
    ) -> list[float]:
        """The test accuracy of a model for each training."""


@final
@dataclass(frozen=True, eq=False)
class FunctionRetrainer(Retrainer):
    """Trains by a function of the user; words are replaced in the texts."""

    train: Train
    explained: Model | None = None
    about: str = ""
    """What its results depend on, if that is not the source code of the function."""

    def claim(self) -> dict[str, Any]:
        """The source code of the function, where Python knows it."""
        if self.about:
            return {"train": self.about}
        try:
            return {"train": inspect.getsource(self.train)}
        except (OSError, TypeError):
            return {"train": getattr(self.train, "__qualname__", type(self.train).__qualname__)}

    def fitted(self, texts: list[str], labels: list[int], seed: int) -> Model:
        """The model that the function returns."""
        try:
            model = self.train(texts, labels, seed)
        # A user's function may raise anything.
        except Exception as error:
            blank = "" if any(map(str.strip, texts)) else " All words are deleted; leave the share 1 out."
            raise BadInput(f"The function that trains failed with {describe_error(error)}.{blank}") from error
        return model if isinstance(model, Model) else wrap(model)

    def accuracies(
        self, trainings: Sequence[RoarTraining], imputation: str, classes: Sequence[str], watch: Callable[[float], None]
    ) -> list[float]:
        """The test accuracies, one training after another."""
        results = []
        for parts, seed in trainings:
            word, labels = replacement_word(imputation), parts["train"].source.labels.tolist()
            model = self.fitted(parts["train"].texts(word), labels, seed)
            results.append(_share_right(model, parts["test"], word, classes))
            watch(len(results) / len(trainings))
        return results


@final
@dataclass(frozen=True, eq=False)
class SingleLayerRetrainer(Retrainer):
    """Trains the paper's model from new weights, `at_once` models side by side."""

    explained: SingleLayer
    recipe: Recipe = field(default_factory=Recipe)
    at_once: int = 1
    validates: ClassVar[bool] = True
    usual_imputation: ClassVar[str] = "mean"

    def __post_init__(self) -> None:
        check_count("at_once", self.at_once)

    def claim(self) -> dict[str, Any]:
        """The recipe; where it is computed changes no more than rounding."""
        unused = ("seed", "min_count", "device")
        return {"recipe": {n: v for n, v in recipe_settings(self.recipe).items() if n not in unused}}

    def accuracies(
        self,
        trainings: Sequence[RoarTraining],
        imputation: str,
        classes: Sequence[str],  # noqa: ARG002
        watch: Callable[[float], None],
    ) -> list[float]:
        """The test accuracies of models that are trained together."""
        config, n_words = self.explained.network.config, len(self.explained.vocabulary)
        cases: list[TrainingCase] = [
            ({split: self._ids(part, imputation) for split, part in parts.items()}, seed) for parts, seed in trainings
        ]
        first = trainings[0][0]
        labels: dict[Split, Labels] = {split: part.source.labels for split, part in first.items()}
        frequencies = word_frequencies(self._whole(first["train"].source), n_words) if imputation == "mean" else None

        def tell(epoch: int, batch: int, n_batches: int) -> None:
            watch((epoch + batch / n_batches) / self.recipe.n_epochs)

        best = train_many(config, n_words, self.recipe, labels, cases, tell, frequencies)
        return [epoch.test_accuracy for epoch in best]

    def _ids(self, part: ReplacedTexts, imputation: str) -> Ids:
        if imputation not in ("mean", "unknown"):
            return self._read(part.texts(replacement_word(imputation)))
        # Texts are read once: there are dozens of trainings on them.
        ids, lengths = self._whole(part.source).copy(), part.source.lengths
        rows, starts = np.repeat(np.arange(len(lengths)), lengths), np.repeat(np.cumsum(lengths) - lengths, lengths)
        ids[rows[part.gone], (np.arange(len(rows)) - starts + 1)[part.gone]] = GONE
        return ids

    def _whole(self, source: WordTexts) -> Ids:
        if source not in self._known:
            self._known[source] = self._read(source.texts)
        return self._known[source]

    @cached_property
    def _known(self) -> WeakKeyDictionary[WordTexts, Ids]:
        return WeakKeyDictionary()

    def _read(self, texts: Sequence[str]) -> Ids:
        return padded_ids(texts, self.explained.vocabulary, self.explained.network.config.T_max)


def retrainer_of(train: Any, recipe: FitRecipe | None = None) -> Retrainer:
    """How to train: by a function, or models of the kind of one of `heedful train`."""
    if isinstance(train, Retrainer):
        return train
    if isinstance(train, SingleLayer):
        return SingleLayerRetrainer(train)
    if isinstance(train, Model):
        try:
            check_trained_here(train)
        except Unsupported:
            raise Unsupported(
                "This model was trained elsewhere; give ROAR a function that trains one: "
                "heedful.roar(train, data, model=model), with train(texts, labels, seed)."
            ) from None
        recipe = recipe or FitRecipe()
        return FunctionRetrainer(partial(_trained_again, train, recipe), train, repr(recipe))
    if not callable(train):
        raise BadInput(
            f"train must be a function of (texts, labels, seed) that returns a model, or a model of `heedful train`; "
            f"{in_short(train)} was given."
        )
    return FunctionRetrainer(train)


def _trained_again(model: Any, recipe: FitRecipe, texts: list[str], labels: list[int], seed: int) -> Model:
    new: Recordable = fresh(model, seed)
    Fitting(new, [new.encode(text) for text in texts], labels, replace(recipe, seed=seed)).run()
    return new


def replacement_word(imputation: str) -> str:
    """The word that replaces others in a text; empty where they are deleted."""
    kind, _, word = imputation.partition(":")
    return {"unknown": _UNKNOWN, "delete": ""}.get(kind, word)


def _share_right(model: Model, part: ReplacedTexts, replacement: str, classes: Sequence[str]) -> float:
    logits = model(part.texts(replacement))
    if logits.shape[1] != len(classes):
        raise BadInput(
            f"The trained model has {logits.shape[1]} outputs and the labels {len(classes)} classes; "
            "return one output for each class."
        )
    # A model may have the classes in another order, by name.
    order = np.array(class_numbers(range(len(classes)), model.classes, classes))
    return float((logits.argmax(axis=1) == order[part.source.labels]).mean())
