"""Training of the transformer: it learns, resumes, and loads; the lecture's counting network learns to count."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import heedful
from heedful.datasets import Dataset
from heedful.datasets.histogram import Histogram
from heedful.datasets.questions import Questions
from heedful.errors import BadInput
from heedful.models.attention_edits import permuted
from heedful.models.switched.config import TransformerConfig
from heedful.models.switched.training import TransformerRecipe, publish_transformer, train_transformer
from tests.models.test_training import Killed, Toy, weights
from tests.models.test_transformer import HISTOGRAM

SIZES = {"n_heads": 2, "T_max": 8, "d_e": 8, "d_att": 4, "d_out": 4, "d_hidden": 8}
DEEP = {"depth": 2, "skip": True, "norm": True, "nonlinearity": "relu"}


@pytest.mark.parametrize("switches", [{}, {**DEEP, "positional": "learned", "padding": "eos"}], ids=["plain", "deep"])
def test_it_learns_and_its_file_loads_with_its_card(switches, tmp_path):
    config, recipe = TransformerConfig(**SIZES, **switches), TransformerRecipe(learning_rate=1e-2, batch_size=8)
    model, epochs = train_transformer(Toy(), config, recipe, tmp_path)
    assert epochs[-1].loss < epochs[0].loss
    card = publish_transformer(model, Toy(), epochs, "heedful train toy --kind transformer", tmp_path)
    assert card.test_accuracy > 0.9
    again = heedful.load(str(tmp_path))
    assert again.fingerprint == card.fingerprint
    assert again.network.config == model.network.config
    assert f"padding {config.padding}" in (tmp_path / "card.md").read_text(encoding="utf-8")
    scores = heedful.explain(again, "the good film", "leave-one-out", target="positive").scores
    assert scores.argmax() == 1


def test_a_killed_run_resumes_to_the_same_weights(tmp_path):
    config, recipe = TransformerConfig(**SIZES, **DEEP), TransformerRecipe(n_epochs=3, batch_size=8, entropy=0.1)
    whole, epochs = train_transformer(Toy(), config, recipe, tmp_path / "whole")

    def kill(epoch, batch, n_batches):
        if (epoch, batch) == (1, 3):
            raise Killed

    with pytest.raises(Killed):
        train_transformer(Toy(), config, recipe, tmp_path / "killed", kill)
    resumed, again = train_transformer(Toy(), config, recipe, tmp_path / "killed")
    assert weights(resumed) == weights(whole)
    assert again == epochs
    with pytest.raises(BadInput, match=r"config \(padding\)"):
        train_transformer(Toy(), TransformerConfig(**SIZES, **DEEP, padding="hidden"), recipe, tmp_path / "killed")


def test_pairs_are_refused(tmp_path):
    with pytest.raises(BadInput, match="questions has pairs, and this transformer reads single texts"):
        train_transformer(Questions(), TransformerConfig(**SIZES), TransformerRecipe(), tmp_path)


@dataclass(frozen=True)
class Part(Dataset):
    """A part of the counting task with few letters."""

    name: ClassVar[str] = "part"
    classes: ClassVar[tuple[str, ...]] = Histogram.classes

    def examples(self, split):
        return Histogram(n_letters=6).examples(split)[: 1_000 if split == "train" else 100]


def test_the_counting_network_learns_to_count_and_explanations_find_what_it_counts(tmp_path):
    config = TransformerConfig(**HISTOGRAM, n_heads=1, T_max=11, d_e=16, d_att=16, d_hidden=32)
    recipe = TransformerRecipe(learning_rate=1e-2, n_epochs=6)
    model, epochs = train_transformer(Part(), config, recipe, tmp_path)
    assert max(epoch.validation_accuracy for epoch in epochs) > 0.85
    rows = Part().examples("test")
    shares, baseline = [], []
    for row in rows[:20]:
        attention = heedful.explain(model, row.text, "attention-mean").scores
        counted = np.array([letter == row.text[-1] for letter in row.text.split()])
        shares.append(attention[counted].sum())
        baseline.append(counted.mean())
    assert np.mean(shares) > np.mean(baseline) + 0.2
    documents = [model.encode(row.text) for row in rows]
    right = model.logits(documents).argmax(axis=1) == [row.label for row in rows]
    wrong = model.edited(documents, permuted(0)).argmax(axis=1) == [row.label for row in rows]
    assert right.mean() > wrong.mean() + 0.2
