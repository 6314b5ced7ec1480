"""The aggregation of attention that is most faithful to one text."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.document import Absence, check_absence
from heedful.document.note import Note
from heedful.document.units import unit_scores
from heedful.explainers import Group, MaskingExplainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.attention_maps.operators import Looks, Reading, combined, looks_of
from heedful.perturb.forecast import MaskCount
from heedful.perturb.sweep import Sweep

Aggregation = tuple[str, Float[Tensor, "batch key"]]
_READINGS: dict[Reading, str] = {
    "from-cls": "the read-out row",
    "column-mean": "column means",
    "column-max": "column maxima",
}


@final
@dataclass(frozen=True)
class Optimus(MaskingExplainer):
    """Optimus: the aggregation of heads and layers most faithful to this text.

    Over heads: mean, maximum or one head. Over layers: mean, maximum, one layer or the product. Of the map: the row of
    the read-out position, or the mean or maximum of each column. Every combination ranks the units; the best one has
    the largest Σ_j (f(x) − f(x without j)) / rank_j. Sums rank units as means do and are left out. A note names the
    combination chosen; `facts["ways"]` is the number of combinations.

    The choice uses the drop in the target when each unit is removed, so evaluating it by that drop is circular.

    Reference: Mylonas, Mollas & Tsoumakas, *An Attention Matrix for Every Decision*, 2022, arXiv:2209.10876.
    Differs from the paper: their score also rewards signs, which attention does not have; ours uses ranks alone.
    """

    name: ClassVar[str] = "optimus"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = frozenset({"layers", "masks"})
    signed: ClassVar[bool] = False

    absence: Absence = "replace"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def n_masks(self, n_units: int) -> MaskCount:
        return MaskCount(n_units + 1, None)

    @torch.no_grad()
    def explain_batch(self, question: Question) -> list[Explanation]:
        looks = looks_of(question)
        ways = [(name, looks.placed(row).cpu().numpy()) for name, row in _aggregations(looks)]
        return [
            self._best(question, index, [(name, rows[index]) for name, rows in ways])
            for index in range(len(question.documents))
        ]

    def _best(self, question: Question, index: int, ways: list[tuple[str, np.ndarray]]) -> Explanation:
        document, sweep = question.documents[index], Sweep(question, index, self.unit, self.absence)
        n_units = sweep.n_units
        keep = np.concatenate([np.ones((1, n_units), dtype=bool), ~np.eye(n_units, dtype=bool)])
        values = sweep(keep)
        drops = values[0] - values[1:]
        scored = [(name, *unit_scores(document, self.unit, row)) for name, row in ways]
        faithful = [_faithfulness(scores, drops) for _, scores, _ in scored]
        name, scores, others = scored[int(np.argmax(faithful))]
        facts = {**others, "faithfulness": max(faithful), "ways": len(ways), "masks": sweep.n_evaluated}
        choice = Note(f"The best of {len(ways)} ways to combine the attention: {name}.", "result")
        return self.explanation(question, index, scores, np.zeros_like(scores), facts).noted((choice, *sweep.notes))


def _faithfulness(scores: Float[np.ndarray, "unit"], drops: Float[np.ndarray, "unit"]) -> float:
    order = np.argsort(-scores, kind="stable")
    return float((drops[order] / np.arange(1, len(order) + 1)).sum())


def _aggregations(looks: Looks) -> Iterator[Aggregation]:
    """Every aggregation with its name."""
    n_layers = len(looks.calls)
    for reading, name in _READINGS.items():
        if reading != "from-cls" and not looks.is_whole:
            continue
        values = looks.read(reading)
        heads: dict[int | str, str] = {"mean": "mean of heads", "max": "max of heads"}
        heads |= {head: f"head {head}" for head in range(values.shape[2])}
        layers: dict[int | str, str] = {"mean": "mean of layers"}
        if n_layers > 1:
            layers |= {"max": "max of layers"} | {layer: f"layer {layer}" for layer in range(n_layers)}
        for over_heads, of_heads in heads.items():
            rows = combined(values, over_heads, 2, "head")
            for over_layers, of_layers in layers.items():
                yield f"{name}, {of_heads}, {of_layers}", combined(rows, over_layers, 1, "layer")
    if looks.is_whole and n_layers > 1 and not looks.is_cross:
        for reading in ("from-cls", "column-mean"):
            name = f"{_READINGS[reading]}, mean of heads, product of layers"
            yield name, looks.read_product(reading, "mean")
