"""Tiny classic models in double precision, with weights nobody trained."""

import torch

from heedful.document import Pair
from heedful.models.classic.classifier import Classic
from heedful.models.classic.network import ClassicConfig, initial_classic
from heedful.models.vocabulary import Vocabulary
from tests.conftest import WORDS

KINDS = [(encoder, attention) for encoder in ("bilstm", "average", "convolution") for attention in ("tanh", "dot")]
TEXTS = ["the film was good .", "a very bad story , but not dull !", "good film"]
PAIRS = [Pair(first, second) for first, second in zip(TEXTS, ["a dull plot", "bad", "not a good actor !"], strict=True)]


def classic(encoder="bilstm", attention="tanh", pairs=False, seed=0, **sizes):
    sizes = {"d_e": 6, "d_hidden": 4, "T_max": 12, "n_classes": 3, **sizes}
    config = ClassicConfig(encoder, attention, **sizes, pairs=pairs)
    vocabulary = Vocabulary(("[cls]", "[unk]", *WORDS))
    network = initial_classic(config, len(vocabulary), seed).double().eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight *= 2
    return Classic(network, vocabulary, ["bad", "good", "neutral"][: config.n_classes])
