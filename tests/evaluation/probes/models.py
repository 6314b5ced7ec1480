"""What tests of the probes share: tiny models, inquiries about them, and attention edited by hand."""

import numpy as np
import torch
from scipy.special import rel_entr

from heedful.document import SPECIAL
from heedful.evaluation.probes.inquiry import Inquiry, TrainAndTest
from heedful.models.fitting.fit import Fitting
from heedful.run_folder import RunFolder
from tests.conftest import WORDS, tiny_model
from tests.families import build
from tests.models.classic.models import classic

TEXTS = [
    "the film was good .",
    "a very bad story , but not dull !",
    "good film",
    "the plot was bad and the actor dull",
    "not a dull story , but bright",
    "an actor was very good",
]
LABELS = (0, 1, 0, 1, 1, 0)


def model_of(kind, **changes):
    """A tiny model in double precision by its kind; of a classic model the seed of its weights and its sizes."""
    if kind == "single-layer":
        return tiny_model(**changes)
    if kind == "classic":
        return sharp(**changes)
    return build(kind)


def sharp(seed=0, strength=8.0, **sizes):
    """A classic model whose attention and decisions are far from even."""
    sizes = {"encoder": "average", "n_classes": 2, **sizes}
    model = classic(seed=seed, **sizes)
    network = model.network
    with torch.no_grad():
        network.W_e *= 5
        network.v *= strength
        network.W_c.weight *= strength
        network.W_c.bias.zero_()
    return model


def inquiry_of(model, texts=TEXTS, labels=None, folder=None, seed=0, **rest):
    documents = tuple(model.encode(text) for text in texts)
    labels = (None,) * len(texts) if labels is None else tuple(labels)
    return Inquiry(model, documents, labels, seed=seed, folder=None if folder is None else RunFolder(folder), **rest)


def trained_inquiry(model, folder=None):
    """An inquiry with 20 texts to train on."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size=5)) for _ in range(20)]
    labels = tuple(int("good" in text or "bright" in text) for text in texts)
    documents = tuple(model.encode(text) for text in texts)
    tested = tuple(model.encode(text) for text in TEXTS)
    training = TrainAndTest(documents, (*labels[:-2], 0, 1), tested, LABELS)
    return inquiry_of(model, labels=LABELS, folder=folder, training=lambda: training)


def logits_under(model, document, weights):
    """The logits when every row of the last layer has these weights (head, token), through the hook alone."""
    n_layers = len(model.attention([document])[0])

    def edit(layer, maps):
        return maps if layer < n_layers - 1 else torch.as_tensor(weights).to(maps)[None, :, None].expand_as(maps)

    return model.edited([document], edit)[0]


def distribution(logits):
    """Probabilities of classes, or of no and yes."""
    if len(logits) == 1:
        logits = np.array([0.0, logits[0]])
    p = np.exp(logits - logits.max())
    return p / p.sum()


def divergence(one, other):
    """The Jensen–Shannon divergence, as half the sum of two relative entropies."""
    middle = (one + other) / 2
    return (rel_entr(one, middle) + rel_entr(other, middle)).sum(axis=-1) / 2


def own_attention(model, document):
    """The attention of the last layer (head, token), and which tokens are words."""
    alpha = model.attention([document])[0, -1]
    is_word = np.zeros(alpha.shape[1], dtype=bool)
    is_word[: len(document.ids)] = document.words != SPECIAL
    return alpha, is_word


class Stopped(Exception):
    """What a killed run raises."""


def count_trainings(monkeypatch, most=None):
    """Counts the trainings from here on; the one after the most that are allowed is killed."""
    done, own = [], Fitting.run

    def run(fitting):
        if most is not None and len(done) == most:
            raise Stopped
        done.append(fitting)
        return own(fitting)

    monkeypatch.setattr(Fitting, "run", run)
    return done


def values(result):
    """The findings of a probe by the start of their name."""
    return {finding.what: finding.value.value for finding in result.findings}
