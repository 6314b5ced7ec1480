import numpy as np
import pytest
import torch
from scipy import stats

from heedful.evaluation.probes.head_removal import HeadRemoval
from tests.evaluation.probes.models import LABELS, TEXTS, inquiry_of, model_of

REPLACED = {"uniform": lambda maps: (maps > 0) / (maps > 0).sum(-1, keepdim=True), "nothing": torch.zeros_like}


def accuracy_by_hand(model, documents, labels, replace, layers, heads):
    """The decisions that are right when these heads of these layers are replaced."""
    right = []
    for document, label in zip(documents, labels, strict=True):

        def edit(layer, maps):
            new = maps.clone()
            if layer in layers:
                new[:, heads] = replace(maps)[:, heads].to(maps)
            return new

        right.append(model.edited([document], edit)[0].argmax() == label)
    return np.array(right, dtype=float)


@pytest.mark.parametrize(
    ("kind", "replace_by"), [("single-layer", "uniform"), ("transformer", "uniform"), ("transformer", "nothing")]
)
def test_every_edit_changes_the_accuracy_as_by_hand(kind, replace_by):
    model = model_of(kind)
    inquiry = inquiry_of(model, labels=LABELS)
    n_layers, n_heads = model.attention([inquiry.documents[0]])[0].shape[:2]
    own = model.logits(inquiry.documents).argmax(axis=1) == LABELS
    result = HeadRemoval(replace_by=replace_by).measure(inquiry)
    first, *edits = result.findings
    assert first.what == "The model's accuracy"
    assert first.value.value == pytest.approx(own.mean())
    by = "uniform attention in" if replace_by == "uniform" else "without"
    for finding in edits:
        name = finding.what.partition(f"{by} ")[2].partition(" (p")[0]
        layers, heads = [*range(n_layers)], [*range(n_heads)]
        if name.startswith("layer"):
            layers = [int(name.split()[1])]
        elif name.startswith("head "):
            heads, layers = [int(name.split()[1])], [int(name.split()[-1])]
        right = accuracy_by_hand(model, inquiry.documents, LABELS, REPLACED[replace_by], layers, heads)
        assert finding.value.value == pytest.approx(right.mean() - own.mean())
        assert finding.value.low <= finding.value.value <= finding.value.high
    n_edits = 1 + (n_layers if n_layers > 1 else 0) + n_layers * n_heads
    assert len(edits) >= min(6, n_edits)
    assert f"of {n_layers * n_heads} heads" in result.why


def test_without_all_labels_the_decisions_that_stay_are_counted():
    model = model_of("single-layer")
    labels = (2, None, *LABELS[2:])
    first, whole, *_ = HeadRemoval().measure(inquiry_of(model, labels=labels)).findings
    assert first.what == "The model's share of decisions kept"
    assert first.value.value == 1
    documents = [model.encode(text) for text in TEXTS]
    own = model.logits(documents).argmax(axis=1)
    kept = accuracy_by_hand(model, documents, own, REPLACED["uniform"], [0], [0, 1, 2]).mean()
    assert whole.value.value == pytest.approx(kept - 1)


def test_p_values_are_mcnemars_with_holms_correction_and_intervals_bonferronis():
    model = model_of("single-layer")
    inquiry = inquiry_of(model, TEXTS * 3, LABELS * 3)
    own = model.logits(inquiry.documents).argmax(axis=1) == inquiry.labels
    p, intervals = {}, {}
    for name, heads in {
        "every head of every layer": [0, 1, 2],
        **{f"head {n} of layer 0": [n] for n in range(3)},
    }.items():
        right = accuracy_by_hand(model, inquiry.documents, inquiry.labels, REPLACED["uniform"], [0], heads)
        change = right - own
        better, worse = int((change > 0).sum()), int((change < 0).sum())
        p[name] = stats.binomtest(better, better + worse).pvalue if better + worse else 1.0
        half = stats.t.ppf(1 - 0.025 / 4, len(own) - 1) * change.std(ddof=1) / np.sqrt(len(own))
        intervals[name] = half or 2 * (1 - (0.025 / 4) ** (1 / len(own)))
    corrected, largest = {}, 0.0
    for rank, name in enumerate(sorted(p, key=p.get)):
        largest = max(largest, min(1.0, (len(p) - rank) * p[name]))
        corrected[name] = largest
    for finding in HeadRemoval().measure(inquiry).findings[1:]:
        name = finding.what.partition("attention in ")[2].partition(" (p")[0]
        assert f"(p = {corrected[name]:.2g})" in finding.what
        assert finding.value.high == pytest.approx(min(1, finding.value.value + intervals[name]))


def test_one_head_is_edited_once_and_one_text_decides_nothing():
    result = HeadRemoval().measure(inquiry_of(model_of("classic"), TEXTS[:1], [0]))
    assert len(result.findings) == 2
    assert (result.findings[1].value.low, result.findings[1].value.high) == (-1, 1)
    assert result.answer == "unknown"
    assert "heads are needed" not in result.why
