"""Trains the transformer with its switches on a data set of texts, and writes it with its card."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from heedful.datasets import Dataset
from heedful.errors import BadInput
from heedful.models.fitting.word_models import WordRecipe, publish_word_model, train_word_model
from heedful.models.switched.config import TransformerConfig
from heedful.models.training import Epoch, ModelCard
from heedful.models.training_loop import BatchProgress
from heedful.models.transformer import Transformer, initial_network
from heedful.models.transformer_file import load_transformer, save_transformer
from heedful.models.vocabulary import Vocabulary


@final
@dataclass(frozen=True)
class TransformerRecipe(WordRecipe):
    """How to train; words with fewer than `min_count` occurrences in the training texts are unknown.

    `entropy` and `rationale` are weights of losses for better attention; 0 leaves a loss out
    (docs/better-attention.md).
    """


def train_transformer(
    dataset: Dataset,
    config: TransformerConfig,
    recipe: TransformerRecipe,
    folder: Path,
    watch: BatchProgress = lambda *_: None,
) -> tuple[Transformer, list[Epoch]]:
    """Trains, or resumes from the last finished epoch in the folder; the weights of the best validation epoch stay.

    The number of classes is that of the data.
    """

    def make(vocabulary: Vocabulary, pairs: bool) -> Transformer:
        if pairs:
            raise BadInput(f"{dataset.name} has pairs, and this transformer reads single texts; use --kind classic.")
        own = replace(config, n_classes=len(dataset.classes))
        network = initial_network(own, len(vocabulary), recipe.seed).to(recipe.device)
        return Transformer(network, vocabulary, dataset.classes)

    return train_word_model(dataset, make, recipe, folder, watch)


def publish_transformer(
    model: Transformer, dataset: Dataset, epochs: Sequence[Epoch], command: str, folder: Path
) -> ModelCard:
    """Writes the model and its card to the folder; accuracies are those of the written file."""
    run = (dataset, epochs, command, folder)
    return publish_word_model(model, model.family, save_transformer, load_transformer, run)
