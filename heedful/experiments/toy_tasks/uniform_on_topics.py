"""The topic task: documents of latent Dirichlet allocation, with attention that is learned, uniform or random."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from heedful.datasets import Example
from heedful.datasets.topics import Topics
from heedful.document import Document
from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import (
    CORRELATIONS,
    SHARES,
    Cell,
    Claim,
    Mean,
    Numbers,
    claim_if,
    column,
    mean_over_seeds,
)
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.workspace import Workspace
from heedful.models.attention_edits import uniform
from heedful.models.fitting.fit import FitRecipe, Fitting
from heedful.models.recording import Edit
from heedful.models.transformer import Transformer, TransformerConfig, initial_network
from heedful.models.vocabulary import SPECIAL_WORDS, Vocabulary, read_words
from heedful.target import log_probabilities

if TYPE_CHECKING:
    from heedful.experiments.figure import Axes, Figure

_LEARNED, _UNIFORM, _RANDOM = "learned", "uniform", "random, frozen"
_EDITS: dict[str, Edit | None] = {_LEARNED: None, _UNIFORM: uniform, _RANDOM: None}
_BOUNDS = {"excess": (0.0, np.inf), "same topic": CORRELATIONS, "other topics": CORRELATIONS}
"""Bounds of what is not a share."""
_NEAR, _LITTLE = 0.9, 0.05
"""The share of the possible gain from which a loss counts as near optimal; a difference in nats that counts as none."""


@final
@dataclass(frozen=True)
class UniformOnTopics(Experiment):
    """One layer on documents of ten topics: learned, uniform or random attention.

    It is trained over seeds to predict the topic of a left-out word. As topics share no word, the best probabilities
    are known in closed form (`Topics.best`), and depend on the counts of the topics alone: on what uniform attention
    averages. One layer with a ReLU, read at [cls]; "random, frozen" keeps the initial weights of query and key.
    Differs from the source: one word per text is predicted, and read at [cls], so attention between words of a topic,
    which they measure too, plays no part.
    """

    name: ClassVar[str] = "uniform-on-topics"
    part: ClassVar[ExperimentPart] = "toy tasks"
    title: ClassVar[str] = "Topic task: uniform attention suffices"
    source: ClassVar[str] = "paper, related work; Li, Li & Risteski, 2023, arXiv:2303.04245"
    smaller_when_quick: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables models, best."""
        n_seeds, n_draws, n_epochs = (3, 1, 3) if workspace.quick else (5, 8, 10)
        data = Topics(text_seed=workspace.seed * n_draws)
        draws = [Topics(text_seed=data.text_seed + number).examples("train") for number in range(n_draws)]
        task = _Task(data, [example for draw in draws for example in draw], data.examples("test"), n_epochs)
        seeds = range(workspace.seed * n_seeds, (workspace.seed + 1) * n_seeds)
        runs = [(attention, seed) for seed in seeds for attention in _EDITS]
        models = []
        for number, run in enumerate(runs, start=1):
            key = f"{run[0].split(',')[0]}-{run[1]}"
            models.append(workspace.step(key, lambda run=run: task.trained(*run, workspace.device)))
            workspace.progress(number, len(runs))
        return {"models": models, "best": [task.optimum()]}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        models, best = numbers["models"], numbers["best"][0]
        return [_near_optimal(models, best), _beside_learned(models), _random(models), _word_vectors(models)]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure topics."""
        drawn = figure(8.0, 3.2)
        models, best = numbers["models"], numbers["best"][0]
        right, excess = (quiet(drawn.add_subplot(1, 2, number)) for number in (1, 2))
        _points(right, models, "accuracy", 100.0)
        right.axvline(100 * float(best["accuracy"] or 0), color=COLOURS[6], linestyle="--", linewidth=1)
        right.set(xlabel="accuracy, %", title="Topic of the left-out word")
        _points(excess, models, "excess", 1.0)
        excess.axvline(0, color=COLOURS[6], linestyle="--", linewidth=1)
        excess.set(xlabel="loss above the best possible, nats", title="Dashed: the best possible")
        return {"topics": drawn}


@final
@dataclass(frozen=True, eq=False)
class _Task:
    """The texts, and how models are trained on them."""

    data: Topics
    training: Sequence[Example]
    tested: Sequence[Example]
    n_epochs: int

    @cached_property
    def _words(self) -> Vocabulary:
        return Vocabulary((*SPECIAL_WORDS, *(word for row in self.data.words for word in row)))

    @cached_property
    def _read(self) -> tuple[list[Document], list[int]]:
        """The training texts as all models read them, and their labels."""
        room = self.data.length + 1
        return [read_words(e.text, self._words, room) for e in self.training], [e.label for e in self.training]

    def optimum(self) -> dict[str, Cell]:
        """What nothing can exceed, and the loss of a guess without the text."""
        best = self.data.best([example.text for example in self.tested])
        right = best.argmax(axis=1) == [example.label for example in self.tested]
        entropy = -(best * np.log(best)).sum(axis=1).mean()
        return {"accuracy": float(right.mean()), "loss": float(entropy), "blind": float(np.log(best.shape[1]))}

    def trained(self, attention: str, seed: int, device: str) -> dict[str, Cell]:
        """One model, trained and tested under one kind of attention."""
        config = TransformerConfig(
            nonlinearity="relu",
            n_heads=1,
            T_max=self.data.length + 1,
            d_e=32,
            d_att=16,
            d_out=32,
            d_hidden=64,
            n_classes=len(self.data.classes),
        )
        network = initial_network(config, len(self._words), seed).to(device)
        model = Transformer(network, self._words, self.data.classes)
        recipe, edit = FitRecipe(self.n_epochs, 64, 3e-3, 0.0, seed), _EDITS[attention]
        documents, labels = self._read
        Fitting(model, documents, labels, recipe, edit=edit, frozen_attention=attention == _RANDOM).run()
        tested = [read_words(example.text, self._words, config.T_max) for example in self.tested]
        logits = model.logits(tested) if edit is None else model.edited(tested, edit)
        logs, best = log_probabilities(logits, "logits"), self.data.best([example.text for example in self.tested])
        same, other = _inner_products(model, self.data)
        return {
            "attention": attention,
            "seed": seed,
            "accuracy": float((logs.argmax(axis=1) == [example.label for example in self.tested]).mean()),
            "excess": float((best * (np.log(best) - logs)).sum(axis=1).mean()),
            "from uniform": 0.0 if edit is not None else _from_uniform(model, tested),
            "same topic": same,
            "other topics": other,
        }


def _from_uniform(model: Transformer, documents: Sequence[Document]) -> float:
    """The total variation between the attention of [cls] and uniform attention, the mean over texts and heads."""
    rows = model.attention(documents)[:, -1]
    return float(np.abs(rows - 1 / rows.shape[-1]).sum(axis=-1).mean() / 2)


def _inner_products(model: Transformer, data: Topics) -> tuple[float, float]:
    """The mean cosine of the word vectors of two words of one topic, and of two topics."""
    vectors = model.network.W_e.detach().double().cpu().numpy()[len(SPECIAL_WORDS) :]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines, topic = vectors @ vectors.T, np.repeat(np.arange(len(data.words)), [len(row) for row in data.words])
    together, apart = topic[:, None] == topic, ~np.eye(len(topic), dtype=bool)
    return float(cosines[together & apart].mean()), float(cosines[~together].mean())


def _over_seeds(models: Sequence[Mapping[str, Cell]], what: str, attention: str) -> Mean:
    return mean_over_seeds(column(models, what, attention=attention), _BOUNDS.get(what, SHARES))


def _differences(models: Sequence[Mapping[str, Cell]], what: str, attention: str) -> Mean:
    """What an attention has more than learned attention, pairing models by their seed."""
    pairs = zip(column(models, what, attention=attention), column(models, what, attention=_LEARNED), strict=True)
    return mean_over_seeds([one - learned for one, learned in pairs], (-np.inf, np.inf))


def _near_optimal(models: Sequence[Mapping[str, Cell]], best: Mapping[str, Cell]) -> Claim:
    possible = float(best["blind"] or 0) - float(best["loss"] or 0)
    gained = {name: 1 - _over_seeds(models, "excess", name).value / possible for name in _EDITS}
    return claim_if(
        gained[_UNIFORM] >= _NEAR,
        "cross-entropy with uniform attention",
        "near optimal",
        f"{_over_seeds(models, 'excess', _UNIFORM)} nats above the best possible {float(best['loss'] or 0):.3f}; "
        f"{gained[_UNIFORM]:.1%} of what the text can tell, learned attention {gained[_LEARNED]:.1%}",
        f"Without the text the loss is {float(best['blind'] or 0):.3f}; {_NEAR:.0%} of the gain counts as near.",
        f"It has less than {_NEAR:.0%} of the possible gain; so may learned attention, if training was short.",
    )


def _beside_learned(models: Sequence[Mapping[str, Cell]]) -> Claim:
    lost, accuracy = _differences(models, "excess", _UNIFORM), _differences(models, "accuracy", _UNIFORM)
    low, high = (lost.low, lost.high) if lost.has_interval else (lost.value, lost.value)
    verdict = "agrees" if high <= _LITTLE else "differs" if low > _LITTLE else "not measured"
    return Claim(
        "loss with uniform attention, above that with learned attention",
        "other parts of the model compensate",
        f"{lost} nats; accuracy {_over_seeds(models, 'accuracy', _UNIFORM)}, learned "
        f"{_over_seeds(models, 'accuracy', _LEARNED)}, difference {accuracy}",
        verdict,
        f"At most {_LITTLE} nats count as none; there are {lost.n} seeds. Learned attention is "
        f"{_over_seeds(models, 'from uniform', _LEARNED)} from uniform in total variation.",
    )


def _random(models: Sequence[Mapping[str, Cell]]) -> Claim:
    return Claim(
        "attention frozen at random weights",
        "",
        f"accuracy {_over_seeds(models, 'accuracy', _RANDOM)}, loss above that with learned attention "
        f"{_differences(models, 'excess', _RANDOM)} nats",
        "new",
        f"Query and key keep their initial weights; {_over_seeds(models, 'from uniform', _RANDOM)} from uniform.",
    )


def _word_vectors(models: Sequence[Mapping[str, Cell]]) -> Claim:
    same, other = (_over_seeds(models, what, _UNIFORM) for what in ("same topic", "other topics"))
    pairs = zip(*(column(models, what, attention=_UNIFORM) for what in ("same topic", "other topics")), strict=True)
    more = mean_over_seeds([one - two for one, two in pairs])
    return claim_if(
        more.low > 0,
        "inner product of word vectors of one topic, with uniform attention",
        "higher than of two topics",
        f"mean cosine {same}, of two topics {other}",
        "The word vectors hold the topics that attention does not.",
        "The interval of the difference contains 0.",
    )


def _points(axes: "Axes", models: Sequence[Mapping[str, Cell]], what: str, scale: float) -> None:
    """One point per model, and the mean with its interval, for every kind of attention."""
    for place, name in enumerate(_EDITS):
        own, mean = column(models, what, attention=name), _over_seeds(models, what, name)
        axes.plot(
            np.multiply(own, scale), np.full(len(own), place), "o", color=COLOURS[place], alpha=0.35, markersize=5
        )
        spread = np.nan_to_num([[mean.value - mean.low], [mean.high - mean.value]]).clip(0) * scale
        axes.errorbar(
            [mean.value * scale], [place + 0.22], xerr=spread, fmt="D", color=COLOURS[place], markersize=5, capsize=3
        )
    axes.set_yticks(range(len(_EDITS)), list(_EDITS))
    axes.set_ylim(len(_EDITS) - 0.4, -0.5)
