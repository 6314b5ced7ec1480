"""The paper's model written the plain way: a module a head, whole T×T matrices, strings in. What `heedful` is measured
against and tested with; it shares no code with it."""

import math
import re

import numpy as np
import torch
from torch import nn

RULES = [
    (r"'", " '  "),
    (r'"', ""),
    (r"\.", " . "),
    (r"<br />", " "),
    (r",", " , "),
    (r"\(", " ( "),
    (r"\)", " ) "),
    (r"!", " ! "),
    (r"\?", " ? "),
    (r";", " "),
    (r":", " "),
    (r"\s+", " "),
]


def basic_english(text: str) -> list[str]:
    text = text.lower()
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return text.split()


class Head(nn.Module):
    def __init__(self, d_e: int, d_att: int, d_out: int, n_classes: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_e, d_att)
        self.key = nn.Linear(d_e, d_att)
        self.value = nn.Linear(d_e, d_out)
        self.last = nn.Linear(d_out, n_classes, bias=False)

    def forward(self, e: torch.Tensor) -> torch.Tensor:
        q, k, v = self.query(e), self.key(e), self.value(e)
        attention = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(k.shape[-1]), dim=-1)
        return self.last((attention @ v)[:, 0])


class Straightforward(nn.Module):
    """A copy of a SingleLayer's weights in the plain form, to the same dtype."""

    def __init__(self, model) -> None:
        super().__init__()
        network, self.words = model.network, model.vocabulary.index
        config = network.config
        dtype = network.W_e.dtype
        self.padding = len(network.W_e) - 1 if config.padding == "eos" else 1
        self.T_max, self.positions = config.T_max, network.W_p.detach().to(dtype)
        self.embedding = nn.Embedding.from_pretrained(network.W_e.detach().clone(), freeze=False)
        self.heads = nn.ModuleList(
            Head(config.d_e, config.d_att, config.d_out, config.n_classes).to(dtype) for _ in range(config.n_heads)
        )
        with torch.no_grad():
            for i, head in enumerate(self.heads):
                for name, weight, bias in (("query", "W_q", "b_q"), ("key", "W_k", "b_k"), ("value", "W_v", "b_v")):
                    getattr(head, name).weight.copy_(getattr(network, weight)[i])
                    getattr(head, name).bias.copy_(getattr(network, bias)[i])
                head.last.weight.copy_(network.W_l[i])

    def ids(self, text: str) -> list[int]:
        numbers = [0] + [self.words.get(word, 1) for word in basic_english(text)]
        return (numbers + [self.padding] * self.T_max)[: self.T_max]

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.from_embeddings(self.embedding(ids) + self.positions)

    def from_embeddings(self, e: torch.Tensor) -> torch.Tensor:
        return torch.stack([head(e) for head in self.heads]).mean(dim=0)

    @torch.no_grad()
    def predict(self, texts: list[str], batch: int = 64) -> np.ndarray:
        rows = [
            self(torch.tensor([self.ids(text) for text in texts[i : i + batch]])) for i in range(0, len(texts), batch)
        ]
        return torch.cat(rows).numpy()
