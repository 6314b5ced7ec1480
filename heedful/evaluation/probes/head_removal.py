"""Does the model need its heads?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np

from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult, decide
from heedful.evaluation.probes.inquiry import Columns, Inquiry
from heedful.evaluation.probes.last_attention import as_distribution
from heedful.models.attention_edits import nothing, only, uniform
from heedful.models.recording import Edit, record
from heedful.statistics.quantity import Quantity, difference_of, is_below, mean_change, mean_quantity
from heedful.statistics.significance import holm, mcnemar

_SHOWN = 5
_WHOLE = "every head of every layer"
_MARGIN = 0.05
"""A loss of accuracy below this counts as none."""


@final
@dataclass(frozen=True)
class HeadRemoval(Probe):
    """Accuracy when a head, or all heads of a layer, attend uniformly (Kovaleva et al.) or are removed (Michel et al.).

    `replace_by` is "uniform" or "nothing".
    Without labels, the share of decisions that stay the same. Intervals of differences are Bonferroni's, p-values are
    McNemar's, corrected by Holm for the number of edits.
    """

    name: ClassVar[str] = "head-removal"
    question: ClassVar[str] = "Does the model need its heads?"
    source: ClassVar[str] = (
        "Kovaleva et al., 2019, arXiv:1908.08593, Section 4.6; Michel et al., 2019, arXiv:1905.10650"
    )
    use: ClassVar[AttentionUse] = "saying that attention matters"
    shows: ClassVar[str] = (
        "Which heads the decisions depend on, and whether any makes them worse. Attention of a head that can be made "
        "uniform without loss says nothing about these decisions."
    )
    does_not_show: ClassVar[str] = (
        "What a head does: others may take over when it is gone, and a head that helps on few texts looks idle. Gains "
        "after a removal are picked from many: only those that hold after correction are named."
    )

    replace_by: Literal["uniform", "nothing"] = "uniform"

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        judged = all(label is not None for label in inquiry.labels)
        edits = _edits(uniform if self.replace_by == "uniform" else nothing, _sizes(inquiry))
        columns = inquiry.over_texts(self.name, lambda index: _of_text(inquiry, index, edits, judged))
        rows = _differences(columns)
        what = "accuracy" if judged else "share of decisions kept"
        findings = [Finding(f"The model's {what}", mean_quantity(columns["own"]))]
        order = sorted(rows, key=lambda edit: (edit["difference"].value, edit["name"]))
        worst = [edit for edit in order if edit["p"] < 0.05 and edit["difference"].value < 0]
        better = [edit for edit in order[::-1] if edit["p"] < 0.05 and edit["difference"].value > 0]
        whole = next(edit for edit in rows if edit["name"] == _WHOLE)
        shown = [whole, *[edit for edit in order if edit is not whole][:_SHOWN], *better[:_SHOWN]]
        by = "uniform attention in" if self.replace_by == "uniform" else "without"
        for edit in {edit["name"]: edit for edit in shown}.values():
            name = f"Change of the {what}, {by} {edit['name']} (p = {edit['p']:.2g})"
            findings.append(Finding(name, edit["difference"], Quantity(0.0), "the head is not needed"))
        n_heads, n_needed = (sum(edit["name"].startswith("head ") for edit in some) for some in (rows, worst))
        alone = f"{n_needed} of {n_heads} heads are needed alone, and " if n_heads else ""
        numbers = f"{alone}{len(better)} edits help"
        change = f"with all heads edited the {what} changes by {100 * whole['difference'].value:+.1f} points"
        # That attention is not needed is one claim, decided by one edit: its interval needs no correction.
        unneeded = is_below(difference_of(columns["own"], columns[_WHOLE]), _MARGIN)
        return decide(
            findings,
            (whole in worst, "yes", f"The decisions need attention: {change}; {numbers}."),
            (bool(worst), "partly", f"Some heads are needed, all together are not: {numbers}."),
            (unneeded, "no", f"The decisions do not need the attention of any head: {numbers}."),
            (True, "unknown", f"The texts do not show whether the decisions need attention: {numbers}."),
        )


def _of_text(inquiry: Inquiry, index: int, edits: Mapping[str, Edit], judged: bool) -> dict[str, float]:
    """Whether the decision is right, or without labels the model's own, as it is and under every edit."""
    model, document, label = inquiry.model, inquiry.documents[index], inquiry.labels[index]
    own = as_distribution(model.logits([document]), model.returns)[0].argmax()
    right = label if judged else own
    row = {"own": float(own == right)}
    for name, edit in edits.items():
        row[name] = float(as_distribution(model.edited([document], edit), model.returns)[0].argmax() == right)
    return row


def _sizes(inquiry: Inquiry) -> list[int]:
    """The number of heads of every layer."""
    return [int(call.q.shape[1]) for call in record(inquiry.model, inquiry.documents[:1]).calls]


def _edits(base: Edit, n_heads: Sequence[int]) -> dict[str, Edit]:
    """The edit of every head, of every layer, and of all; an edit that changes as much as another is left out."""
    edits = {_WHOLE: base}
    for layer, n in enumerate(n_heads):
        if len(n_heads) > 1:
            edits[f"layer {layer}"] = only(base, layers=[layer])
        for head in range(n if n > 1 else 0):
            edits[f"head {head} of layer {layer}"] = only(base, layers=[layer], heads=[head])
    return edits


def _differences(columns: Columns) -> list[dict[str, Any]]:
    """Each edit's change of accuracy, with an interval and a p-value that are corrected for the number of edits."""
    names = [name for name in columns if name != "own"]
    own, right = columns["own"], [columns[name] for name in names]
    p = holm(np.array([mcnemar(int((row > own).sum()), int((row < own).sum())) for row in right]))
    changes = [mean_change(row - own, len(names)) for row in right]
    rows = zip(names, changes, p.tolist(), strict=True)
    return [{"name": name, "difference": change, "p": value} for name, change, value in rows]
