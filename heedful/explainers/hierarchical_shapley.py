"""Shapley values on a binary tree of the document, for long texts."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from heedful.document import Absence, check_absence
from heedful.document.note import Note
from heedful.errors import BadInput
from heedful.explainers import MaskingExplainer, Question
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
    word; a picture is halved across its longer side. A node's value is split between its two halves as the Shapley
    value of two players: half of what one adds before the other, half of what it adds after it. Each of the two is
    split on, beside what was there. Down every path of contexts this gives the value of the game with the tree's
    levels (Winter, 1989; with one level Owen's, 1977), each of a unit's 2^depth contexts with weight 2^−depth: for a
    balanced tree of d units about 2d²/3 masks, beside 2^d for Shapley values. They agree where f is a sum over units.

    It is the recursion of shap's PartitionExplainer with its default `fixed_context=None`, and as there the node and
    context of the largest absolute weighted value are split first until `budget` masks are spent; units of a node that
    was not split share its value evenly. A note says how much that is, and then there is no error to give (None): words
    that cancel inside such a node are not seen. Nothing is sampled; the error is zero where every unit was reached.

    Differs from shap: the tree follows sentences, cut as near the middle as their ends allow, while shap's joins tokens
    by their punctuation; 32 nodes are split at a time; ties are settled by order, not by chance.
    """

    name: ClassVar[str] = "hierarchical-shapley"
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
            raise BadInput(f"hierarchical-shapley needs a budget of at least 2 masks; {self.budget} was given.")

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
