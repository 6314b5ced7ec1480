"""Trains a word model on a data set of texts or pairs, and writes it with its card."""

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from heedful.datasets import Dataset, Example
from heedful.document import Pair, check_text
from heedful.errors import BadInput
from heedful.models.budget import check_device
from heedful.models.fitting.better_attention import PENALTIES, check_penalties, penalised
from heedful.models.fitting.fit import FitRecipe, Fitting, accuracy_of, read_examples
from heedful.models.recording import Recordable
from heedful.models.training import Epoch, ModelCard, check_splits, claim_run, write_card
from heedful.models.training_loop import BatchProgress
from heedful.models.vocabulary import Vocabulary, build_vocabulary
from heedful.run_folder import RunFolder

WordModel = TypeVar("WordModel", bound=Recordable)


@dataclass(frozen=True)
class WordRecipe(ABC):  # noqa: B024
    """How to train; words with fewer than `min_count` occurrences in the training texts are unknown."""

    learning_rate: float = 1e-3
    batch_size: int = 32
    n_epochs: int = 8
    min_count: int = 2
    weight_decay: float = 1e-5
    seed: int = 0
    device: str = "cpu"
    entropy: float = 0.0
    rationale: float = 0.0

    def __post_init__(self) -> None:
        if not self.min_count > 0:
            raise BadInput(f"min_count must be above 0; {self.min_count} was given.")
        check_penalties(self.penalties)
        check_device(self.device)
        _ = self.steps  # Refuses what no training on documents can have.

    @property
    def penalties(self) -> dict[str, float]:
        """The weights of those losses for better attention that this recipe has."""
        return {name: value for name, value in vars(self).items() if name in PENALTIES}

    @property
    def steps(self) -> FitRecipe:
        """The part that any training on documents has."""
        return FitRecipe(self.n_epochs, self.batch_size, self.learning_rate, self.weight_decay, self.seed)


def train_word_model(
    dataset: Dataset,
    make: Callable[[Vocabulary, bool], WordModel],
    recipe: WordRecipe,
    folder: Path,
    watch: BatchProgress = lambda *_: None,
) -> tuple[WordModel, list[Epoch]]:
    """Trains, or resumes from the last finished epoch in the folder; the weights of the best validation epoch stay.

    `make` gets the vocabulary of the training texts, and whether these are pairs.
    """
    # The test split is read now, though it is needed only at the end: a long run must not end without its card.
    training, validation, _ = (dataset.examples(split) for split in ("train", "validation", "test"))
    check_splits(dataset.name, training, validation)
    if len(dataset.classes) < 2:
        raise BadInput(f"{dataset.name} has labels of {len(dataset.classes)} classes; a classifier needs 2 or more.")
    texts = [check_text(text) for example in training for text in _texts(example)]
    model: Any = make(build_vocabulary(texts, recipe.min_count), isinstance(training[0].text, Pair))
    (documents, labels), held_out = read_examples(model, training), read_examples(model, validation)
    loss = penalised(recipe.penalties, documents, training)
    with RunFolder(folder).alone():
        claim_run(folder, dataset, model.network.config, recipe, repr((training, validation, model.fingerprint)))
        fitting = Fitting(model, documents, labels, recipe.steps, loss, held_out=held_out)
        epochs = fitting.run(folder / "state.safetensors", watch)
    return model, epochs


def publish_word_model(
    model: Any,
    kind: str,
    save: Callable[[Any, Path], None],
    load: Callable[[Path], Any],
    run: tuple[Dataset, Sequence[Epoch], str, Path],
) -> ModelCard:
    """Writes the model and its card with accuracies of the written file; `run` is data, epochs, command, folder."""
    dataset, epochs, command, folder = run
    path = folder / "model.safetensors"
    save(model, path)
    shipped = load(path)
    shipped.network.to(model.network.W_e.device)

    def measure(examples: Sequence[Example]) -> float:
        return accuracy_of(shipped, *read_examples(shipped, examples))

    return write_card(shipped, kind, measure, dataset, epochs, command, folder)


def _texts(example: Example) -> tuple[object, ...]:
    return (example.text.first, example.text.second) if isinstance(example.text, Pair) else (example.text,)
