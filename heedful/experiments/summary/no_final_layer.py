"""The summary's third experiment: without the final linear layer, does attention explain better?"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import CORRELATIONS, DIFFERENCES, Cell, Claim, Mean, Numbers, column, mean_of
from heedful.experiments.classifiers import as_single_layer
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.method_correlations import LIME_ALPHA, SIZE_ALPHA, choose_texts, pearson
from heedful.experiments.summary.final_layer import fold_final_layer, hold_equal_values, hold_identity
from heedful.experiments.variant_tests import of, variant_claims, variant_figure
from heedful.experiments.variants import (
    ONE_LAYER,
    TINY,
    Variant,
    measure_variants,
    review_texts,
    sized_config,
    train_variant,
)
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.models.single_layer import SingleLayer
from heedful.models.transformer import TransformerConfig

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_WITH, _WITHOUT, _EQUAL = "W_ℓ trained", "W_ℓ = identity", "equal values"
_LONGER = {True: 15, False: 6}
"""Epochs for equal values: attention alone learns more slowly."""
_METHODS = {"α": "attention-mean", "G×I": "gradient-x-input", "LIME": "lime-exact"}


@final
@dataclass(frozen=True)
class NoFinalLayer(Experiment):
    """The single layer with W_ℓ, without it, and with equal values for all words.

    Without W_ℓ: d_out is the number of classes and W_ℓ stays the identity. But f depends only on the product W_ℓ W_v,
    so the values can compensate, and any model with W_ℓ can be written without it, which is shown by folding it in. To
    leave only attention, W_ℓ v must not depend on the word: with equal values (`final_layer.py`) words differ only in
    attention, with one head per class. The tests are those of `variant_tests.py`; LIME is exact. In the quick form
    models are tiny and texts synthetic.
    """

    name: ClassVar[str] = "no-final-layer"
    part: ClassVar[ExperimentPart] = "summary"
    title: ClassVar[str] = "Attention without the final layer"
    source: ClassVar[str] = "summary, experiment 3 and mechanism 1"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables models, documents, folded, own_head."""
        texts, recipe = review_texts(workspace), TINY if workspace.quick else ONE_LAYER
        slow = replace(recipe, schedule=replace(recipe.schedule, n_epochs=_LONGER[workspace.quick]))
        plain = sized_config(workspace, TransformerConfig())
        narrow = replace(plain, d_out=plain.n_classes)
        variants = [
            Variant(_WITH, plain, texts, recipe),
            Variant(_WITHOUT, narrow, texts, recipe, hold_identity),
            Variant(_EQUAL, replace(narrow, n_heads=plain.n_classes), texts, slow, hold_equal_values),
        ]
        numbers = measure_variants(workspace, variants)
        whole, equal = (as_single_layer(train_variant(workspace, variants[index])) for index in (0, 2))
        some = choose_texts(whole, texts.test, 6 if workspace.quick else 20, workspace.seed)
        numbers["folded"] = workspace.step("folded", lambda: _differences(whole, some))
        numbers["own_head"] = workspace.step("own-head", lambda: _own_head(equal, some))
        return numbers

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        spared = {name: of(numbers["documents"], name, SIZE_ALPHA) for name in (_WITH, _WITHOUT, _EQUAL)}
        own = mean_of(_by_document(numbers), CORRELATIONS)
        over_heads = mean_of(of(numbers["documents"], _EQUAL, LIME_ALPHA), CORRELATIONS)
        about = " Tiny models on synthetic texts." if numbers["models"][0]["quick"] else ""
        gains = {
            name: mean_of(np.subtract(spared[name], spared[_WITH]).tolist(), DIFFERENCES) for name in (_WITHOUT, _EQUAL)
        }
        return [
            _identity(max(column(numbers["folded"], "difference")), mean_of(spared[_WITH], CORRELATIONS)),
            *(
                Claim(f"α with |LIME|, {name}, less that of W_ℓ trained", "", str(gain), "new", _sentence(gain) + about)
                for name, gain in gains.items()
            ),
            Claim(
                "LIME with the attention of the class's own head, where all words have the same value",
                "",
                str(own),
                "new",
                f"Over {own.n} documents. With equal values a head's attention is its contribution to its "
                f"class; averaged over heads, α-avg has {over_heads} with LIME.{about}",
            ),
            *variant_claims(numbers, "do the single-layer results hold without the final layer?"),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures no-final-layer, own-head."""
        drawn = figure(6.0, 4.0)
        axes = quiet(drawn.add_subplot())
        axes.plot(
            column(numbers["own_head"], "alpha"),
            column(numbers["own_head"], "lime"),
            ".",
            color=COLOURS[0],
            alpha=0.4,
            rasterized=True,
        )
        axes.axhline(0.0, color=COLOURS[7], linewidth=0.8)
        axes.set(
            title="equal values: one dot per word", xlabel="attention of the class's own head", ylabel="LIME (logit)"
        )
        return {"no-final-layer": variant_figure(numbers), "own-head": drawn}


def _identity(gap: float, spared: Mean) -> Claim:
    same = gap < 1e-6
    return Claim(
        "attention where W_ℓ is the identity",
        "“would directly reflect model importance”",
        f"f, α, G×I and LIME are the same as with the trained W_ℓ up to {gap:.0e}; α with |LIME| {spared} in both",
        "corrected" if same else "differs",
        "f depends only on the product W_ℓ W_v: W_ℓ can be folded into the values and becomes the identity, "
        "while everything else stays the same."
        if same
        else "Folding W_ℓ into the values changed the model, which is impossible; this is a bug.",
    )


def _sentence(gain: Mean) -> str:
    how = "better" if gain.low > 0 else "worse" if gain.high < 0 else "no better"
    return f"Attention explains {how}, over the same {gain.n} documents."


def _differences(model: SingleLayer, texts: list[str]) -> list[dict[str, Cell]]:
    """The largest change over words when W_ℓ is folded into the values."""
    other = fold_final_layer(model)
    rows: list[dict[str, Cell]] = [
        {"what": "f", "difference": float(np.abs(model(texts) - other(texts)).max())},
    ]
    for what, method in _METHODS.items():
        pairs = zip(explain(model, texts, method), explain(other, texts, method), strict=True)
        rows.append({"what": what, "difference": max(float(np.abs(a.scores - b.scores).max()) for a, b in pairs)})
    return rows


def _own_head(model: SingleLayer, texts: list[str]) -> list[dict[str, Cell]]:
    """LIME and the attention of the predicted class's head, word by word."""
    rows: list[dict[str, Cell]] = []
    for number, text in enumerate(texts):
        lime = explain(model, text, "lime-exact", unit="type")
        alpha = explain(model, text, "attention-mean", unit="type", head=lime.target.index)
        for word, a, b in zip(lime.units, alpha.scores.tolist(), lime.scores.tolist(), strict=True):
            rows.append({"document": number, "word": word, "alpha": a, "lime": b})
    return rows


def _by_document(numbers: Numbers) -> list[float]:
    rows = numbers["own_head"]
    documents = dict.fromkeys(row["document"] for row in rows)
    pairs = [[np.array(column(rows, name, document=document)) for name in ("alpha", "lime")] for document in documents]
    return [pearson(alpha, lime) for alpha, lime in pairs]
