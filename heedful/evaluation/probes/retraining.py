"""Models trained again, for the probes that ask what another training would have done."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float

from heedful.document import SPECIAL, Document
from heedful.errors import Unsupported
from heedful.evaluation.probes.inquiry import Inquiry, TrainAndTest
from heedful.models.attention_hook import still
from heedful.models.fitting.batch import BatchLoss, cross_entropy
from heedful.models.fitting.fit import FitRecipe, Fitting, attention_only
from heedful.models.fitting.fresh import fresh
from heedful.models.recording import Edit, Recordable, portions
from heedful.statistics.divergence import jensen_shannon

Start = Literal["own", "scratch"]
"""Where training begins: at the model's weights, except those that act through attention alone, or at new ones."""
_PROBED = 32
SHORT = 0.03
"""A training that ends further below the model's own accuracy is too short to say anything."""


def retrained(
    inquiry: Inquiry,
    start: Start,
    recipe: FitRecipe,
    loss: BatchLoss = cross_entropy,
    edit: Edit | None = None,
    frozen_attention: bool = False,
) -> Recordable:
    """A model of the same kind, trained on the training texts; the seed of the inquiry is added to that of the recipe.

    From its own weights without weight decay, which would shrink vectors of words that the training texts do not have.
    """
    texts, seed = training_texts(inquiry), inquiry.seed + recipe.seed
    model = restarted(inquiry.model, texts, seed, start)
    recipe = replace(recipe, seed=seed, weight_decay=0.0 if start == "own" else recipe.weight_decay)
    Fitting(model, texts.documents, texts.labels, recipe, loss, edit, frozen_attention).run()
    return model


def training_texts(inquiry: Inquiry) -> TrainAndTest:
    """The texts to train on; refused where there are none."""
    if inquiry.training is None:
        raise Unsupported("This probe trains models; give texts with labels as `train`, or the name of a data set.")
    return inquiry.training()


def restarted(model: Recordable, texts: TrainAndTest, seed: int, start: Start) -> Recordable:
    """The model at the start of a training: new weights, or its own with new ones where attention alone uses them."""
    new = fresh(model, seed)
    if start == "own":
        alone = attention_only(new, texts.documents[:_PROBED], texts.labels[:_PROBED])
        weights = dict(model.network.named_parameters())
        with torch.no_grad():
            for name, weight in new.network.named_parameters():
                if name not in alone:
                    weight.copy_(weights[name])
    return new


@torch.no_grad()
def correct(model: Recordable, texts: TrainAndTest, edit: Edit | None = None) -> Bool[np.ndarray, "text"]:
    """For every test text, whether the predicted class is its label."""
    documents = texts.test_documents
    if edit is None:
        logits = model.logits(documents)
    else:
        with still(model.network):
            logits = np.concatenate([model.edited(some, edit) for some in portions(model, documents)])
    return logits.argmax(axis=1) == np.array(texts.test_labels)


def word_attention(model: Recordable, documents: Sequence[Document]) -> list[Float[np.ndarray, "_ _"]]:
    """The last layer's attention of each text among its words' tokens, head by head."""
    rows = []
    for some in portions(model, documents):
        attention = model.attention(some)[:, -1]
        for document, heads in zip(some, attention, strict=True):
            words = heads[:, : len(document.ids)][:, document.words != SPECIAL]
            rows.append(words / np.maximum(words.sum(axis=1, keepdims=True), 1e-300))
    return rows


def divergences(
    one: Sequence[Float[np.ndarray, "_ _"]], other: Sequence[Float[np.ndarray, "_ _"]]
) -> Float[np.ndarray, "text"]:
    """The Jensen–Shannon divergence of two models' attention in each text, averaged over heads."""
    return np.array([float(jensen_shannon(a, b).mean()) for a, b in zip(one, other, strict=True)])


def between_seeds(attention: Sequence[Sequence[Float[np.ndarray, "_ _"]]]) -> Float[np.ndarray, "text"]:
    """The divergence of the attention of models that differ only in their seed, averaged over pairs of them."""
    pairs = [divergences(a, b) for a, b in combinations(attention, 2)]
    return np.mean(pairs, axis=0) if pairs else np.full(len(attention[0]), np.nan)
