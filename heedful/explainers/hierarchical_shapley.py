"""Shapley values on a binary tree of the document, for long texts."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from heedful.document import Absence, check_absence
from heedful.document.note import Note
from heedful.errors import BadInput
from heedful.explainers import Group, MaskingExplainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.forecast import MaskCount
from heedful.perturb.hierarchy import halves, masks_needed, share_out
from heedful.perturb.sweep import Sweep


@final
@dataclass(frozen=True)
class HierarchicalShapley(MaskingExplainer):
    """Shapley values on a tree of sentences and words, for long texts.

    The document is a binary tree: sentences in halves, then the words of a sentence in halves, then the tokens of a
    word; an image is halved across its longer side. A node's value is split between its two halves as the Shapley
    value of two players: the mean of what a half adds before the other and after it. Each half is split in turn, in
    both contexts. The result is the value of the game with the tree's levels (Winter, 1989; with one level Owen, 1977):
    each of a unit's 2^depth contexts has weight 2^−depth. A balanced tree of d units needs about 2d²/3 masks, Shapley
    values need 2^d; the two agree if f is a sum over units.

    It is the recursion of shap's PartitionExplainer with its default `fixed_context=None`. As in shap, the node and
    context with the largest absolute weighted value are split first until `budget` masks are spent; the units of a node
    that was not split share its value evenly. Then a note gives their share of the value and the error is None, since
    units that cancel within a node cannot be seen. Nothing is sampled; the error is zero if every node was split.

    Differs from shap: the tree follows sentences, cut as close to the middle as they allow, while shap joins tokens by
    their punctuation; 32 nodes are split at a time; ties are broken by order, not at random.
    """

    name: ClassVar[str] = "hierarchical-shapley"
    group: ClassVar[Group] = "Shapley values"
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    signed: ClassVar[bool] = True
    removal: ClassVar[Literal["single", "joint"] | None] = "joint"
    joint_rank: ClassVar[int | None] = 5
    summary_group: ClassVar[tuple[str, int] | None] = ("shapley", 3)

    budget: int = 500
    absence: Absence = "replace"

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if self.budget < 2:
            raise BadInput(f"{self.name} needs a budget of at least 2 masks; {self.budget} was given.")

    def n_masks(self, n_units: int) -> MaskCount:  # noqa: ARG002
        return MaskCount(self.budget, "budget")

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        sweep = Sweep(question, index, self.unit, self.absence)
        split = halves(question.documents[index], self.unit)
        needed = masks_needed(split, np.arange(sweep.n_units))
        goal = sweep.expected = min(self.budget, needed)
        result = share_out(split, sweep, self.budget)
        notes = sweep.notes
        if result.stopped:
            notes = (Note(f"Stopped by the user after {sweep.n_masks:,} of {goal:,} masks.", "stopped"), *notes)
        if result.n_spread:
            spread = (
                f"{result.spread_share:.0%} of the value is spread evenly over parts that were not split; "
                f"budget={needed} would reach every {self.unit}."
            )
            notes = (*notes, Note(spread, "inexact"))
        facts = {
            "masks": sweep.n_evaluated,
            "empty": result.empty,
            "spread_share": result.spread_share,
            "masks_for_all": needed,
        }
        error = None if result.n_spread else np.zeros_like(result.scores)
        return self.explanation(question, index, result.scores, error, facts).noted(notes)
