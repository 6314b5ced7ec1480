"""A linear bag of words whose weights are known, the explainer that reads them, and evaluations on it."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from torch import nn

import heedful
from heedful.explainers import Explainer
from heedful.explainers.run import run_explainer
from heedful.explanation import Explanation
from heedful.metrics import Evaluation
from heedful.models import Model, Offer
from heedful.models.question import Question, ask
from heedful.models.torch_module import TorchModule
from heedful.perturb.document_values import DocumentValues
from heedful.perturb.masks import generator

N_WORDS, N_GOLD, LENGTH, N_TEXTS = 60, 10, 20, 30
WORDS = tuple(f"w{number}" for number in range(N_WORDS))
GOLD = frozenset(WORDS[:N_GOLD])
WIDTH = 3


class Linear(nn.Module):
    """The logits of a text are sums over its words."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(0)
        size = torch.linspace(0.5, 3, N_GOLD, dtype=torch.float64)
        weights = torch.zeros(N_WORDS + 1, dtype=torch.float64)
        weights[1 : N_GOLD + 1] = size * torch.tensor([1.0, -1.0] * (N_GOLD // 2), dtype=torch.float64)
        table = torch.randn(N_WORDS + 1, WIDTH, generator=rng, dtype=torch.float64)
        table[0] = 0.0
        table[:, 0] = weights
        self.table = nn.Embedding.from_pretrained(scale * table)
        self.head = nn.Linear(WIDTH, 2, bias=False, dtype=torch.float64)
        self.head.weight.data = (
            torch.tensor([[-1.0] + [0.0] * (WIDTH - 1), [1.0] + [0.0] * (WIDTH - 1)]).double() / scale
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(ids).sum(dim=1))


def split(text: str) -> list[tuple[int, int, int]]:
    tokens, start = [], 0
    for word in text.split():
        start = text.index(word, start)
        tokens.append((WORDS.index(word) + 1 if word in WORDS else 0, start, start + len(word)))
        start += len(word)
    return tokens


def linear(scale: float = 1.0) -> Model:
    """The model; with another `scale` its embeddings are larger and its last layer smaller, and f is the same."""
    return heedful.wrap(Linear(scale), split, classes=("negative", "positive"))


def texts() -> list[str]:
    """Texts of distinct words, a quarter of them with a weight."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(N_TEXTS):
        gold = rng.choice(N_GOLD, size=5, replace=False)
        others = N_GOLD + rng.choice(N_WORDS - N_GOLD, size=LENGTH - 5, replace=False)
        rows.append(" ".join(WORDS[index] for index in rng.permutation(np.concatenate([gold, others]))))
    return rows


@final
@dataclass(frozen=True)
class Truth(Explainer):
    """The weight of every word, read from the model."""

    name: ClassVar[str] = "truth"
    needs: ClassVar[frozenset[Offer]] = frozenset()
    signed: ClassVar[bool] = True

    def explain_batch(self, question: Question) -> list[Explanation]:
        model = question.model
        assert isinstance(model, TorchModule)
        rows = []
        for index, document in enumerate(question.documents):
            table, head = model.network.table.weight, model.network.head.weight[question.targets[index].index]
            scores = ((table[torch.from_numpy(document.ids)] - table[0]) @ head).detach().numpy()
            rows.append(self.explanation(question, index, scores, np.zeros_like(scores), {}))
        return rows


def evaluations(explainer: Explainer) -> list[Evaluation]:
    """One evaluation a text, with all that can be known of it; what people marked is what the model uses."""
    model, twin, altered_models = linear(), linear(2.0), {}
    rows = []
    for text in texts():
        question = ask(model, [text], target=1)
        gold = np.array([word in GOLD for word in question.documents[0].units("word")])
        rows.append(
            Evaluation(
                question=question,
                explanation=run_explainer(explainer, question)[0],
                values=DocumentValues(question, "word"),
                explainer=explainer,
                rationale=gold,
                gold=gold,
                twin=twin,
                altered_models=altered_models,
                label=int(question.logits[0].argmax()),
            )
        )
    return rows


@final
@dataclass(frozen=True)
class Noisy(Explainer):
    """The weights with noise on them that changes with the seed: better than rng and worse than the truth."""

    name: ClassVar[str] = "noisy"
    needs: ClassVar[frozenset[Offer]] = frozenset()
    signed: ClassVar[bool] = True

    seed: int = 0
    noise: float = 0.5

    def explain_batch(self, question: Question) -> list[Explanation]:
        rows = []
        for index, true in enumerate(Truth().explain_batch(question)):
            rng = generator(self.seed, true.document)
            scores = true.scores + self.noise * rng.standard_normal(len(true.scores))
            rows.append(self.explanation(question, index, scores, None, {}))
        return rows


@final
@dataclass(frozen=True)
class FewAtRandom(Explainer):
    """As many words as have a weight, chosen at random; the others have no score."""

    name: ClassVar[str] = "few-at-random"
    needs: ClassVar[frozenset[Offer]] = frozenset()
    signed: ClassVar[bool] = True

    def explain_batch(self, question: Question) -> list[Explanation]:
        found = []
        for index, true in enumerate(Truth().explain_batch(question)):
            scores = generator(1, true.document).permutation(true.scores)
            found.append(self.explanation(question, index, scores, None, {}))
        return found
