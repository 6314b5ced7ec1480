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
from heedful.models.attention_hook import Attended
from heedful.perturb.forecast import MaskCount
from heedful.perturb.sweep import Sweep

Aggregation = tuple[str, Float[Tensor, "batch key"]]


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
        model, documents = question.recordable, question.documents
        n_sources = model.n_sources(documents)
        readout = model.readout(documents)
        calls = [call for call in question.recording.calls if call.kind == ("cross" if n_sources else "self")]
        nothing = torch.zeros_like(readout)
        ways = [
            (name, model.placed(documents, *((nothing, row) if n_sources else (row, None))).cpu().numpy())
            for name, row in _aggregations(calls, readout, _real(question, readout))
        ]
        return [
            self._best(question, index, [(name, rows[index]) for name, rows in ways]) for index in range(len(documents))
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


def _real(question: Question, readout: Float[Tensor, "batch query"]) -> Float[Tensor, "batch query"]:
    """Equal weights on the rows of the document's own tokens."""
    real = torch.zeros_like(readout)
    for row, document, read in zip(real, question.documents, readout, strict=True):
        n_rows = (
            len(document.ids)
            if not question.recordable.n_sources(question.documents)
            else int(read.nonzero().max()) + 1
        )
        row[:n_rows] = 1 / n_rows
    return real


def _aggregations(
    calls: list[Attended], readout: Float[Tensor, "batch query"], real: Float[Tensor, "batch query"]
) -> Iterator[Aggregation]:
    """Every aggregation with its name."""
    whole = all(call.q.shape[2] == readout.shape[1] for call in calls)
    readings = [("the read-out row", [call.pulled(readout) for call in calls])]
    if whole:
        readings.append(("column means", [call.pulled(real) for call in calls]))
        readings.append(("column maxima", [_largest(call, real) for call in calls]))
    for reading, layers in readings:
        by_layer = torch.stack(layers, dim=1)
        heads = [("mean of heads", by_layer.mean(dim=2)), ("max of heads", by_layer.amax(dim=2))]
        heads += [(f"head {n}", by_layer[:, :, n]) for n in range(by_layer.shape[2])]
        for head, rows in heads:
            yield f"{reading}, {head}, mean of layers", rows.mean(dim=1)
            if rows.shape[1] > 1:
                yield f"{reading}, {head}, max of layers", rows.amax(dim=1)
                for layer in range(rows.shape[1]):
                    yield f"{reading}, {head}, layer {layer}", rows[:, layer]
    if whole and len(calls) > 1 and calls[0].kind == "self":
        for name, start in (("the read-out row", readout), ("column means", real)):
            row = start
            for call in reversed(calls):
                row = call.pulled(row).mean(dim=1)
            yield f"{name}, mean of heads, product of layers", row


def _largest(call: Attended, real: Float[Tensor, "batch query"]) -> Float[Tensor, "batch head key"]:
    """The largest of each column over the document's own rows."""
    largest = real.new_zeros(*call.q.shape[:2], call.k.shape[2])
    for queries in call.portions(real):
        rows = call.rows(queries).to(real) * (real[:, queries] > 0)[:, None, :, None]
        largest = torch.maximum(largest, rows.amax(dim=2))
    return largest
