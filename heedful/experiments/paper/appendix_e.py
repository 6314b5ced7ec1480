"""Appendix E and Figure 6: a transformer of 6 layers × 6 heads, LIME against the attention of its first layer."""

from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, Literal, final

import numpy as np

from heedful.datasets.imdb import Imdb
from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import CORRELATIONS, Cell, Claim, ClaimVerdict, Mean, Numbers, agreement, column, mean_of
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.method_correlations import LIME_ALPHA, SIZE_ALPHA, choose_texts, correlate_methods
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.training_texts import TrainingTexts
from heedful.experiments.variant_tests import QUICK, of, summary_sentence, variant_tests
from heedful.experiments.variants import DEEP, TINY, Variant, model_row, review_texts, sized_config, train_variant
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.models import Model
from heedful.models.transformer import Transformer, TransformerConfig
from heedful.models.transformer_file import save_transformer
from heedful.run_folder import write_atomically
from heedful.statistics.correlation import pearson
from heedful.statistics.intervals import correlation_interval, wilson

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_Law = Literal["delete", "replace"]
_LAWS: tuple[_Law, ...] = ("delete", "replace")
_RUNS = 5
_ACCURACY, _PEARSON, _SIZES = 0.8222, -0.424, 0.672
"""The published values of Appendix E."""
_PREDICTED = "the predicted class"
_TINY = "A tiny model on synthetic texts cannot decide this; the full form trains the real one."


@final
@dataclass(frozen=True)
class AppendixE(Experiment):
    """Six layers of six heads on IMDB: accuracy, and Figure 6 on one and many texts.

    The paper gives the numbers of layers and heads; skip connections, norms, the ReLU and everything else are our
    choice. Figure 6: LIME as the official package runs it, words deleted and masks independent, mean and sd of 5 runs
    of 5,000 masks, against α-avg of the first layer, for the positive class's logit. The paper does not print the
    document: ours was chosen to match the caption. Over many reviews LIME replaces words, from 1,000 masks. “The
    negative sign is because the document is classified negative” is tested by the sign of LIME ~ α among reviews of
    either prediction. Whether the single-layer results extend is tested as in `variant_tests.py`, for the logit of the
    predicted class. The model is stored in `model/`, for `heedful.load`. In the quick form it has 2 layers of 2 heads
    and synthetic texts. Of a user's model nothing is trained, and Figure 6 alone is drawn.
    """

    name: ClassVar[str] = "appendix-e"
    part: ClassVar[ExperimentPart] = "paper"
    title: ClassVar[str] = "Six layers of six heads"
    source: ClassVar[str] = "paper, Appendix E and Figure 6"
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables models, figure_6, documents."""
        if workspace.foreign:
            text, about = workspace.text or FIGURE_4, {"variant": "your model", "quick": workspace.quick}
            rows = [row for law in _LAWS for row in _figure_6(workspace, workspace.model, text, law, workspace.target)]
            return {"models": [about], "figure_6": rows, "documents": []}
        config = TransformerConfig(depth=6, skip=True, norm=True, nonlinearity="relu")
        if workspace.quick:
            config = replace(config, depth=2)
        training_texts = review_texts(workspace) if workspace.quick else _the_papers_split()
        variant = Variant(
            f"{config.depth} layers", sized_config(workspace, config), training_texts, TINY if workspace.quick else DEEP
        )
        model = train_variant(workspace, variant)
        _keep(workspace, model)
        workspace.progress(1, 3)
        text = workspace.text or FIGURE_4
        rows = [
            row
            for law in _LAWS
            for row in workspace.step(f"figure-6-{law}", lambda law=law: _figure_6(workspace, model, text, law))
        ]
        workspace.progress(2, 3)
        texts = choose_texts(model, variant.texts.test, 8 if workspace.quick else 200, workspace.seed)
        n_lime = 300 if workspace.quick else 1000
        documents = correlate_methods(workspace, variant.name, model, texts, n_lime, target=1)
        documents += correlate_methods(workspace, _PREDICTED, model, texts, n_lime)
        workspace.progress(3, 3)
        return {"models": [model_row(workspace, variant, model)], "figure_6": rows, "documents": documents}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        if not numbers["documents"]:
            return _correlations_alone(numbers)
        quick = bool(numbers["models"][0]["quick"])
        name = str(numbers["models"][0]["variant"])
        (test,) = variant_tests([row for row in numbers["documents"] if row["variant"] == _PREDICTED])
        signed, sized = (
            mean_of(of(numbers["documents"], name, measure), CORRELATIONS) for measure in (LIME_ALPHA, SIZE_ALPHA)
        )
        over = f"Over {signed.n} reviews"
        return [
            _accuracy(numbers),
            *_figure_claims(numbers, quick),
            Claim(
                "LIME with α-avg of the first layer, over many reviews",
                f"{_PEARSON} of one",
                str(signed),
                "new",
                f"{over}; by LIME's size it is {sized}.",
            ),
            _sign_claim(numbers, quick),
            Claim(
                f"do the single-layer results hold in {name}?",
                "",
                f"α with G-l1 {test.follows}; G×I with LIME, less α with LIME {test.nearer}",
                "not measured" if quick else "new",
                QUICK if quick else summary_sentence([test]),
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures figure-6, by-prediction."""
        drawn = figure(7.0, 4.5)
        axes = quiet(drawn.add_subplot())
        alpha, lime, sd = (column(numbers["figure_6"], name, law="delete") for name in ("alpha", "lime", "sd"))
        axes.errorbar(
            alpha,
            lime,
            yerr=sd,
            fmt="o",
            color=COLOURS[0],
            ecolor=COLOURS[5],
            markersize=4,
            label="a word, ± sd of 5 runs",
        )
        words = [str(row["word"]) for row in numbers["figure_6"] if row["law"] == "delete"]
        for place in np.argsort(-np.abs(lime))[:8].tolist():
            axes.annotate(
                words[place], (alpha[place], lime[place]), textcoords="offset points", xytext=(5, 4), fontsize="small"
            )
        axes.axhline(0.0, color=COLOURS[7], linewidth=0.8)
        axes.set(title="Figure 6, reproduced", xlabel="α-avg of the first layer", ylabel="LIME, deleting (logit)")
        axes.legend(frameon=False)
        return {"figure-6": drawn, **({"by-prediction": _by_prediction(numbers)} if numbers["documents"] else {})}


def _the_papers_split() -> TrainingTexts:
    """The 20,000 reviews on which the paper trains (Appendix F); its 5,000 validation reviews are not used."""
    imdb = Imdb()
    return TrainingTexts("imdb", imdb.classes, imdb.examples("train"), imdb.examples("test"))


def _keep(workspace: Workspace, model: Transformer) -> None:
    path = workspace.folder / "model" / "model.safetensors"
    if not path.exists():
        write_atomically(path, partial(save_transformer, model))


def _figure_6(
    workspace: Workspace, model: Model, text: str, law: _Law, target: str | int | None = 1
) -> list[dict[str, Cell]]:
    n_samples = 500 if workspace.quick else 5000
    settings = {"unit": "type", "n_samples": n_samples, "absence": law, "design": "independent"}
    runs = [explain(model, text, "lime", target=target, seed=workspace.seed + run, **settings) for run in range(_RUNS)]
    alpha = explain(model, text, "attention-mean", target=target, layer=0, unit="type")
    scores = np.stack([run.scores for run in runs])
    columns = (alpha.scores, scores.mean(axis=0), scores.std(axis=0, ddof=1))
    return [
        {"law": law, "word": word, "alpha": float(a), "lime": float(b), "sd": float(c)}
        for word, a, b, c in zip(alpha.units, *columns, strict=True)
    ]


def _accuracy(numbers: Numbers) -> Claim:
    (model,) = numbers["models"]
    n_right, n_test = (int(model[name] or 0) for name in ("n_right", "n_test"))
    low, high = wilson(n_right, n_test)
    share = n_right / n_test
    ours = f"{share:.2%} [{low:.2%}, {high:.2%}] of {n_test:,}"
    if model["quick"]:
        return Claim(
            "accuracy on IMDB's test reviews", f"{_ACCURACY:.2%}", "", "not measured", f"{_TINY} It has {ours}."
        )
    theirs = wilson(round(_ACCURACY * n_test), n_test)
    verdict, why = agreement(_ACCURACY, share, (low, high), theirs)
    why += f" Trained on {model['n_train']:,} reviews, in one run; what the paper does not say of its model is ours."
    return Claim("accuracy on IMDB's test reviews", f"{_ACCURACY:.2%}", ours, verdict, why)


def _correlations_alone(numbers: Numbers) -> list[Claim]:
    """What Figure 6 shows of a user's model, and why the rest of the appendix is missing."""
    alpha, lime = (np.array(column(numbers["figure_6"], name, law="delete")) for name in ("alpha", "lime"))
    low, high = correlation_interval(correlation := pearson(lime, alpha), len(lime))
    ours = f"{correlation:.3f} [{low:.3f}, {high:.3f}]; |LIME| {pearson(np.abs(lime), alpha):.3f}"
    why = "Accuracy and correlations over many reviews are of the model that the appendix trains."
    return [
        Claim("Figure 6: LIME with α-avg", "", ours, "new", f"Over {len(lime)} words, deleted."),
        Claim("accuracy and the sign of LIME with α-avg", f"{_ACCURACY:.2%}", "", "not measured", why),
    ]


def _figure_claims(numbers: Numbers, quick: bool) -> list[Claim]:
    correlations: dict[str, dict[str, float]] = {"LIME with α-avg": {}, "|LIME| with α-avg": {}}
    for law in _LAWS:
        alpha, lime = (np.array(column(numbers["figure_6"], name, law=law)) for name in ("alpha", "lime"))
        correlations["LIME with α-avg"][law] = pearson(lime, alpha)
        correlations["|LIME| with α-avg"][law] = pearson(np.abs(lime), alpha)
    published = dict(zip(correlations, (_PEARSON, _SIZES), strict=True))
    over_many = dict(zip(correlations, (LIME_ALPHA, SIZE_ALPHA), strict=True))
    name = str(numbers["models"][0]["variant"])
    claims = []
    for what, laws in correlations.items():
        n_words = len(column(numbers["figure_6"], "alpha", law="delete"))
        low, high = correlation_interval(laws["delete"], n_words)
        verdict, because = agreement(
            published[what], laws["delete"], (low, high), correlation_interval(published[what], n_words)
        )
        others = np.array(of(numbers["documents"], name, over_many[what]))
        as_strong = float((others * np.sign(published[what]) >= abs(published[what])).mean())
        why = (
            f"{because} Intervals are over {n_words} words, on our own document, since the paper's is not printed: "
            f"{as_strong:.0%} of {len(others)} reviews reach the published value. With words replaced instead of "
            f"deleted it is {laws['replace']:.3f}."
        )
        claims.append(
            Claim(
                f"Figure 6: {what}",
                f"{published[what]}",
                f"{laws['delete']:.3f} [{low:.3f}, {high:.3f}]",
                "not measured" if quick else verdict,
                _TINY if quick else why,
            )
        )
    return claims


def _sides(numbers: Numbers) -> dict[str, Mean]:
    """LIME ~ α among the reviews predicted negative and among those predicted positive."""
    return {
        name: mean_of(_among(numbers, LIME_ALPHA, label), CORRELATIONS)
        for label, name in enumerate(("negative", "positive"))
    }


def _among(numbers: Numbers, measure: str, label: int) -> list[float]:
    """Correlations for the positive class's logit, among the reviews with this prediction."""
    name = numbers["models"][0]["variant"]
    values = column(numbers["documents"], "value", variant=name, measure=measure, kind="pearson", predicted=label)
    return [value for value in values if isfinite(value)]


def _sign_claim(numbers: Numbers, quick: bool) -> Claim:
    sides = _sides(numbers)
    held = sides["negative"].high < 0 < sides["positive"].low
    decided = all(mean.has_interval for mean in sides.values())
    verdict: ClaimVerdict = "not measured" if quick or not decided else "agrees" if held else "differs"
    why = (
        "LIME correlates negatively with α where the prediction is negative and positively where it is positive."
        if held
        else "The sign of the correlation does not simply follow the prediction."
    )
    ours = "; ".join(f"predicted {name}: {mean} (n = {mean.n})" for name, mean in sides.items())
    published = "negative because the document is classified negative"
    return Claim("the sign of LIME with α-avg", published, ours, verdict, f"{why} {_TINY}" if quick else why)


def _by_prediction(numbers: Numbers) -> "Figure":
    drawn = figure(7.0, 3.5)
    for number, (measure, title) in enumerate(((LIME_ALPHA, "LIME with α"), (SIZE_ALPHA, "|LIME| with α")), start=1):
        axes = quiet(drawn.add_subplot(1, 2, number))
        for label, name in enumerate(("negative", "positive")):
            values = _among(numbers, measure, label)
            axes.hist(
                values,
                bins=np.linspace(-1, 1, 21).tolist(),
                color=COLOURS[1 - label],
                alpha=0.6,
                label=f"predicted {name}",
            )
        published = _PEARSON if measure == LIME_ALPHA else _SIZES
        axes.axvline(published, color=COLOURS[6], linestyle="--", label="paper, one document")
        axes.set(title=title, xlabel="Pearson's correlation", ylabel="reviews")
    drawn.legend(*drawn.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return drawn
