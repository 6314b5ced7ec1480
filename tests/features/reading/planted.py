"""Texts, and features whose active tokens are known."""

import numpy as np
import torch
import transformers as hf

import heedful
from heedful.document import Document
from heedful.features.autoencoder import Rule
from heedful.features.card import Card
from heedful.features.dictionary import Dictionary
from heedful.features.reading.active import ActivePairs, ReadTexts
from tests.families import byte_pairs

WORDS = (
    "the",
    "a",
    "film",
    "plot",
    "story",
    "actor",
    "was",
    "is",
    "good",
    "bad",
    "dull",
    "bright",
    "very",
    "not",
    "and",
)


def random_texts(n=80, seed=0, n_words=12):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(4, n_words))) for _ in range(n)]


def read_words(texts):
    """Texts whose tokens are their words."""
    words = [tuple(text.split()) for text in texts]
    tokens = tuple(tuple(f" {word}" if n else word for n, word in enumerate(some)) for some in words)
    nothing = np.zeros(0, dtype=np.int64)
    documents = tuple(Document(text, nothing, (), (), nothing, nothing > 0) for text in texts)
    return ReadTexts(tuple(str(n) for n in range(len(texts))), documents, tokens, tuple(words))


def pairs_where(read, activation):
    """The pairs of a feature whose activation is a function of the words of a text and a place."""
    values = [activation(words, place) for words in read.pieces for place in range(len(words))]
    rows = np.flatnonzero(values)
    return ActivePairs(0, rows.astype(np.int32), np.array(values, dtype=np.float32)[rows])


def planted_model():
    """A model whose vectors that enter layer 0 are the tokens themselves: a 1 at the token's number."""
    torch.manual_seed(0)
    n = len(byte_pairs())
    d_e = n + n % 2
    config = hf.GPT2Config(n_embd=d_e, n_layer=1, n_head=2, n_positions=64, n_inner=8, vocab_size=n)
    network = hf.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        network.transformer.wte.weight.copy_(torch.eye(n, d_e))
        network.transformer.wpe.weight.zero_()
    return heedful.wrap(network, byte_pairs())


def planted_dictionary(model, weights):
    """Feature j has the activation `weights[j][piece]` at tokens with that piece, and nowhere else."""
    tokenizer = byte_pairs()
    d_e = model.network.config.n_embd
    W_enc = torch.zeros(len(weights), d_e)
    for row, own in zip(W_enc, weights, strict=True):
        for piece, value in own.items():
            (number,) = tokenizer(piece)["input_ids"]
            row[number] = value
    rng = torch.Generator().manual_seed(0)
    W_dec = torch.nn.functional.normalize(torch.randn(W_enc.shape, generator=rng), dim=1)
    nothing = torch.zeros(len(weights))
    return Dictionary(
        W_enc=W_enc,
        b_enc=nothing,
        W_dec=W_dec,
        b_dec=torch.zeros(d_e),
        rule=Rule(torch.zeros(1, len(weights)), None),
        card=Card("relu", model=model.fingerprint, layer=0),
        largest=nothing.clone(),
        density=nothing.clone(),
        model=model,
    )
