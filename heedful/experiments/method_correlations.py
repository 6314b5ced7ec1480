"""Correlations between the explanations of one model, document by document."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from heedful.datasets import Example
from heedful.document.units import sum_to
from heedful.experiments.claim import Cell, finite_or_none
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.models import Model
from heedful.models.single_layer import SingleLayer
from heedful.statistics.correlation import pearson, spearman
from heedful.statistics.intervals import NORMAL_97_5

ALPHA_G_AVG, ALPHA_G_L1, ALPHA_GXI = "α ~ G-avg", "α ~ G-l1", "α ~ |G×I|"
LIME_ALPHA, SIZE_ALPHA, LIME_GXI, LIME_IG = "LIME ~ α", "|LIME| ~ α", "LIME ~ G×I", "LIME ~ IG"
LIME_THEOREM = "LIME ~ Theorem 5.1"
_STEPS = 32


@final
@dataclass(frozen=True, eq=False)
class MethodScores:
    """The scores of one document by several methods, per position; those of LIME per distinct word.

    α is α-avg of the first layer, Eq. (10). IG are integrated gradients from a text of [unk]s. `noise` is the standard
    error of LIME's coefficients, zero where LIME is exact; `theorem` exists only for the paper's model.
    """

    predicted: int
    word_of: Int[np.ndarray, "position"]
    alpha: Float[np.ndarray, "position"]
    g_avg: Float[np.ndarray, "position"]
    g_l1: Float[np.ndarray, "position"]
    g_x_input: Float[np.ndarray, "position"]
    ig: Float[np.ndarray, "position"]
    lime: Float[np.ndarray, "word"]
    noise: Float[np.ndarray, "word"]
    theorem: Float[np.ndarray, "word"] | None

    def pairs(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The compared pairs; for comparison with LIME, scores are summed over a word's occurrences, as in Eq. (19)."""
        alpha, g_x_input, ig = (
            sum_to(self.word_of, len(self.lime), scores) for scores in (self.alpha, self.g_x_input, self.ig)
        )
        pairs = {
            ALPHA_G_AVG: (self.alpha, self.g_avg),
            ALPHA_G_L1: (self.alpha, self.g_l1),
            ALPHA_GXI: (self.alpha, np.abs(self.g_x_input)),
            LIME_ALPHA: (self.lime, alpha),
            SIZE_ALPHA: (np.abs(self.lime), alpha),
            LIME_GXI: (self.lime, g_x_input),
            LIME_IG: (self.lime, ig),
        }
        return pairs if self.theorem is None else {**pairs, LIME_THEOREM: (self.lime, self.theorem)}

    def reliability(self) -> float:
        """The share of the variance of LIME's coefficients over words that is not sampling noise.

        Sampling noise reduces every correlation with LIME by the square root of this share.
        """
        spread = float(self.lime.var())
        return 1.0 - float((self.noise**2).mean()) / spread if spread > 0 else float("nan")


def method_scores(model: Model, texts: Sequence[str], target: int | None, n_lime: int, seed: int) -> list[MethodScores]:
    """The scores of every text; the target is a class, or None for the predicted class.

    LIME replaces words by [unk], as the theory assumes. It is exact for the paper's model and sampled with `n_lime`
    masks for others.
    """
    wanted: dict[str, Any] = {"target": target}
    names = ("gradient-mean", "gradient-l1", "gradient-x-input")
    alpha = explain(model, list(texts), "attention-mean", layer=0, **wanted)
    gradients = [explain(model, list(texts), name, **wanted) for name in names]
    along: dict[str, Any] = {"baseline": "unknown", "n_steps": _STEPS}
    gradients.append(explain(model, list(texts), "integrated-gradients", **along, **wanted))
    if isinstance(model, SingleLayer):
        lime = explain(model, list(texts), "lime-exact", unit="type", **wanted)
        theorem = explain(model, list(texts), "lime-theorem", unit="type", **wanted)
    else:
        lime = explain(model, list(texts), "lime", unit="type", n_samples=n_lime, seed=seed, **wanted)
        theorem = [None] * len(texts)
    predicted = model(list(texts)).argmax(axis=1).tolist()
    return [
        MethodScores(
            predicted[number],
            alpha[number].document.coarsening("word", "type"),
            alpha[number].scores,
            *(gradient[number].scores for gradient in gradients),
            lime=line.scores,
            noise=np.zeros_like(line.scores) if line.error is None else line.error / NORMAL_97_5,
            theorem=None if closed is None else closed.scores,
        )
        for number, (line, closed) in enumerate(zip(lime, theorem, strict=True))
    ]


def correlation_rows(variant: str, document: int, seen: MethodScores) -> list[dict[str, Cell]]:
    """The table's rows of one document: Pearson's and Spearman's correlation of every pair, and LIME's reliability."""
    same: dict[str, Cell] = {"variant": variant, "document": document, "predicted": seen.predicted}
    rows = [
        {**same, "measure": measure, "kind": kind, "value": finite_or_none(correlation(*pair))}
        for measure, pair in seen.pairs().items()
        for kind, correlation in (("pearson", pearson), ("spearman", spearman))
    ]
    return [*rows, {**same, "measure": "LIME", "kind": "reliability", "value": finite_or_none(seen.reliability())}]


def correlate_methods(
    workspace: Workspace, variant: str, model: Model, texts: Sequence[str], n_lime: int, target: int | None = None
) -> list[dict[str, Cell]]:
    """The rows of every text; a step computes several texts."""
    at_once = 3 if workspace.quick else 25
    rows: list[dict[str, Cell]] = []
    for start in range(0, len(texts), at_once):
        part = texts[start : start + at_once]

        def work(start: int = start, part: Sequence[str] = part) -> list[dict[str, Cell]]:
            seen = method_scores(model, part, target, n_lime, workspace.seed)
            return [
                row for number, scores in enumerate(seen) for row in correlation_rows(variant, start + number, scores)
            ]

        rows += workspace.step(f"survey-{file_key(variant)}-{start}", work)
    return rows


def file_key(variant: str) -> str:
    """The variant's name as part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", variant.lower()).strip("-")


def choose_texts(model: Model, examples: Sequence[Example], n: int, seed: int, least: int = 10) -> list[str]:
    """A random sample of the texts with at least 10 distinct known words, drawn with the seed.

    A correlation over fewer words is meaningless.
    """
    chosen: list[str] = []
    for index in np.random.default_rng(seed).permutation(len(examples)).tolist():
        if len(chosen) == n:
            break
        document = model.encode(examples[index].text)
        if len(set(document.ids[document.known].tolist())) > least:
            chosen.append(examples[index].text)
    return chosen
