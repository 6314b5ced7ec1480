"""Trains a classic model on a data set of texts or pairs, and writes it with its card."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from heedful.datasets import Dataset
from heedful.errors import BadInput
from heedful.models.classic.classifier import Classic
from heedful.models.classic.file import load_classic, save_classic
from heedful.models.classic.network import ClassicConfig, initial_classic
from heedful.models.classic.word_vectors import begin_with_vectors
from heedful.models.fitting.word_models import WordRecipe, publish_word_model, train_word_model
from heedful.models.training import Epoch, ModelCard
from heedful.models.training_loop import BatchProgress
from heedful.models.vocabulary import Vocabulary


@final
@dataclass(frozen=True)
class ClassicRecipe(WordRecipe):
    """How to train; words with fewer than `min_count` occurrences in the training texts are unknown.

    `entropy`, `rationale`, `diversity` and `leak` are weights of losses for better attention; 0 leaves a loss out
    (docs/better-attention.md). `word_vectors` is a text file of word vectors to begin with, as of GloVe or fastText.
    """

    diversity: float = 0.0
    leak: float = 0.0
    word_vectors: str = ""


def train_classic(
    dataset: Dataset, config: ClassicConfig, recipe: ClassicRecipe, folder: Path, watch: BatchProgress = lambda *_: None
) -> tuple[Classic, list[Epoch]]:
    """Trains, or resumes from the last finished epoch in the folder; the weights of the best validation epoch stay.

    The number of classes, and whether the texts are pairs, are those of the data.
    """
    if recipe.leak and config.encoder == "average":
        raise BadInput("The encoder 'average' reads every word alone, so nothing can leak; leave leak at 0.")

    def make(vocabulary: Vocabulary, pairs: bool) -> Classic:
        own = replace(config, n_classes=len(dataset.classes), pairs=pairs)
        network = initial_classic(own, len(vocabulary), recipe.seed).to(recipe.device)
        if recipe.word_vectors:
            begin_with_vectors(network, vocabulary, Path(recipe.word_vectors))
        return Classic(network, vocabulary, dataset.classes)

    return train_word_model(dataset, make, recipe, folder, watch)


def publish_classic(model: Classic, dataset: Dataset, epochs: Sequence[Epoch], command: str, folder: Path) -> ModelCard:
    """Writes the model and its card to the folder; accuracies are those of the written file."""
    run, kind = (dataset, epochs, command, folder), f"classic model, {model.family}"
    return publish_word_model(model, kind, save_classic, load_classic, run)
