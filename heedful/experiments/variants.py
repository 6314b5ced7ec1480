"""Variants of one classifier, each trained and then surveyed in the same way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from heedful.datasets.imdb import Imdb
from heedful.experiments.claim import Cell
from heedful.experiments.classifiers import (
    ClassifierRecipe,
    Hold,
    as_single_layer,
    correct_predictions,
    hold_nothing,
    train_classifier,
)
from heedful.experiments.method_correlations import choose_texts, correlate_methods, file_key
from heedful.experiments.training_texts import TrainingTexts, dataset_texts, synthetic_sentiment
from heedful.experiments.workspace import Workspace
from heedful.models.single_layer import SingleLayer
from heedful.models.training_loop import Schedule
from heedful.models.transformer import Transformer, TransformerConfig

TINY = ClassifierRecipe(Schedule(n_epochs=5, batch_size=20, learning_rate=1e-2))
"""For tiny models on synthetic texts, which they learn almost perfectly in a second or two."""

ONE_LAYER = ClassifierRecipe(Schedule(n_epochs=3, batch_size=64, learning_rate=3e-3))
DEEP = ClassifierRecipe(Schedule(n_epochs=4, batch_size=128, learning_rate=8e-4), word_scale=1.0)
"""For IMDB. On 4,000 reviews six layers with norms learnt less at a higher rate and with smaller initial vectors."""


@final
@dataclass(frozen=True)
class Variant:
    """A classifier to train: its parts, its texts and its recipe."""

    name: str
    config: TransformerConfig
    texts: TrainingTexts
    recipe: ClassifierRecipe
    hold: Hold = hold_nothing


def review_texts(workspace: Workspace) -> TrainingTexts:
    """The 20,000 and 25,000 IMDB reviews of Appendix F, or in the quick form synthetic ones."""
    return synthetic_sentiment(500, 200, workspace.seed) if workspace.quick else dataset_texts(Imdb())


def sized_config(workspace: Workspace, config: TransformerConfig) -> TransformerConfig:
    """The sizes of Appendix F, or in the quick form tiny ones; positions as in the authors' code."""
    if not workspace.quick:
        return replace(config, positional="authors")
    tiny = replace(config, T_max=64, d_e=16, d_att=8, d_hidden=32, positional="authors")
    return replace(tiny, n_heads=min(config.n_heads, 2), d_out=min(config.d_out, 8))


def reader(model: Transformer) -> Transformer | SingleLayer:
    """The model to explain: the paper's model class if every switch is off."""
    config = model.network.config
    return as_single_layer(model) if config.plain and config.depth == 1 else model


def train_variant(workspace: Workspace, variant: Variant) -> Transformer:
    """The trained model of the variant, from its file if it is stored."""
    key = file_key(variant.name)
    return train_classifier(workspace, key, variant.config, variant.texts, variant.recipe, variant.hold)


def measure_variants(workspace: Workspace, variants: Sequence[Variant]) -> dict[str, list[dict[str, Cell]]]:
    """Trains and surveys every variant: the tables `models`, with accuracies, and `documents`.

    The logit of the predicted class is explained.
    """
    numbers: dict[str, list[dict[str, Cell]]] = {"models": [], "documents": []}
    n_documents, n_lime = (6, 300) if workspace.quick else (150, 1000)
    for number, variant in enumerate(variants):
        model = train_variant(workspace, variant)
        workspace.progress(2 * number + 1, 2 * len(variants))
        numbers["models"].append(model_row(workspace, variant, model))
        explained = reader(model)
        texts = choose_texts(explained, variant.texts.test, n_documents, workspace.seed)
        numbers["documents"] += correlate_methods(workspace, variant.name, explained, texts, n_lime)
        workspace.progress(2 * number + 2, 2 * len(variants))
    return numbers


def model_row(workspace: Workspace, variant: Variant, model: Transformer) -> dict[str, Cell]:
    """One row of the table of models: settings, training texts and accuracy."""
    hits = correct_predictions(workspace, file_key(variant.name), model, variant.texts)
    return {
        "variant": variant.name,
        "texts": variant.texts.name,
        "quick": workspace.quick,
        "n_train": len(variant.texts.train),
        "n_words": len(model.vocabulary),
        "n_test": len(hits),
        "n_right": sum(hits),
    }
