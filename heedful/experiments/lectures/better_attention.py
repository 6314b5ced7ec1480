"""Better attention: what losses on attention change in a model, and what they do not."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, ClassVar, NamedTuple, final

import numpy as np

from heedful.datasets.eraser_movies import EraserMovies
from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import (
    CORRELATIONS,
    SHARES,
    Cell,
    Claim,
    ClaimVerdict,
    Mean,
    Numbers,
    column,
    mean_over_seeds,
)
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.lectures.attention_training import (
    LabelledSplits,
    measure_attention,
    train_with_losses,
    untrained,
)
from heedful.experiments.reviews import marked_reviews
from heedful.experiments.workspace import Workspace
from heedful.models.classic.network import ClassicConfig
from heedful.models.fitting.fit import FitRecipe
from heedful.models.network import Config
from heedful.models.vocabulary import build_vocabulary

if TYPE_CHECKING:
    from heedful.experiments.figure import Axes, Figure

_NONE = "none"
_WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "BiLSTM": {_NONE: 0.0, "entropy": 0.3, "rationale": 0.1, "diversity": 0.3, "leak": 0.1},
    "single layer": {_NONE: 0.0, "entropy": 0.02, "rationale": 0.03},
}
"""The weight λ of each loss, by model: one that has a visible effect with seed 0 and does not prevent learning."""


@final
class Promise(NamedTuple):
    """What a loss is to improve: the measure, the sign of an improvement, and the published claim."""

    measure: str
    sign: int
    published: str


_PROMISES = {
    "entropy": (
        Promise("attention entropy", -1, "the objective: attention on few words"),
        Promise("auprc", 1, "Nguyen et al., 2023: sparse attention is more plausible"),
    ),
    "rationale": (
        Promise("marked", 1, "the objective: attention on words that people mark"),
        Promise("comprehensiveness gain", 1, "Zhong et al., 2019: trained attention is more faithful"),
    ),
    "diversity": (
        Promise("conicity", -1, "the objective: states that differ"),
        Promise("shuffled", 1, "Mohankumar et al., 2020: shuffled attention then changes the predictions"),
    ),
    "leak": (
        Promise("leak", -1, "the objective: a word's state comes from the word"),
        Promise("comprehensiveness gain", 1, "Tutek & Šnajder, 2020: attention is more faithful"),
    ),
}
_MEASURES = {
    "accuracy": "test accuracy",
    "attention entropy": "entropy of attention",
    "marked": "attention on marked words",
    "auprc": "AUPRC of attention",
    "comprehensiveness gain": "comprehensiveness over random",
    "τ attention": "τ with leave-one-out",
    "shuffled": "change when shuffled",
    "for": "top words on its side",
}
"""What is drawn and compared, with the title of its panel."""
_CLASSIC = ("conicity", "leak")
"""What only classic models have."""
_BOUNDS = {"τ attention": CORRELATIONS, "comprehensiveness gain": (-1.0, 1.0)}
"""The bounds of measures that are not shares."""


@final
@dataclass(frozen=True)
class BetterAttention(Experiment):
    """What losses for better attention change in a model, before and after.

    A BiLSTM with tanh attention and the paper's layer with four heads are trained on the same reviews with
    cross-entropy alone and with one loss more, three times each; runs with the same seed begin with the same weights.
    Accuracy, the entropy of attention (1 is uniform) and the attention on marked words are means over all test texts;
    metrics of `trust` and findings of `probe` over some of them: Kendall's τ with leave-one-out, the change of the
    output when attention is shuffled, and the share of the five words with most attention that are for the decision.
    Intervals are Student's over the trainings, differences paired by seed; they do not include the variation between
    texts. In the quick form models are tiny and texts synthetic.
    """

    name: ClassVar[str] = "better-attention"
    part: ClassVar[ExperimentPart] = "lectures"
    title: ClassVar[str] = "Do losses for better attention make attention more useful?"
    source: ClassVar[str] = "lecture, How to make attention more effective?; Nguyen et al., 2023; Zhong et al., 2019; "
    source += "Mohankumar et al., 2020; Tutek & Šnajder, 2020"
    smaller_when_quick: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables runs, data."""
        splits, n_seeds = _splits(workspace), 2 if workspace.quick else 3
        rows, todo = [], [(m, loss, seed) for m, of in _WEIGHTS.items() for loss in of for seed in range(n_seeds)]
        for number, (model, loss, seed) in enumerate(todo):
            row = _measured(workspace, splits, model, loss, seed)
            row["comprehensiveness gain"] = row["comprehensiveness"] - row["comprehensiveness, random"]
            about: dict[str, Cell] = {"model": model, "loss": loss, "weight": _WEIGHTS[model][loss], "seed": seed}
            # A measure may be missing: of a model without states, or where a probe refuses attention that collapsed.
            values = {name: row.get(name, nan) for name in dict.fromkeys((*_MEASURES, *row, *_CLASSIC))}
            rows += [{**about, "measure": name, "value": value} for name, value in values.items()]
            workspace.progress(number + 1, len(todo))
        data = {"texts": splits.name, "n_train": len(splits.train), "n_test": len(splits.test)}
        return {"runs": rows, "data": [{**data, "n_probed": _n_probed(workspace), "n_seeds": n_seeds}]}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Whether each loss does what it is for, and what else it changes."""
        losses = [(model, loss) for model, of in _WEIGHTS.items() for loss in of if loss != _NONE]
        promised = [_promised(numbers, *own, promise) for own in losses for promise in _PROMISES[own[1]]]
        return [*promised, *(_changed(numbers, model, loss) for model, loss in losses)]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure losses."""
        drawn = figure(11.0, 5.5)
        for number, (measure, title) in enumerate(_MEASURES.items()):
            axes = quiet(drawn.add_subplot(2, 4, number + 1))
            _panel(axes, numbers, measure)
            axes.set_title(title, fontsize="medium")
            axes.tick_params(labelleft=number % 4 == 0)
        return {"losses": drawn}


def _splits(workspace: Workspace) -> LabelledSplits:
    """The ERASER film reviews, or in the quick form synthetic reviews whose words for the label are marked."""
    if not workspace.quick:
        data = EraserMovies()
        parts = [data.examples(split) for split in ("train", "validation", "test")]
        return LabelledSplits(data.name, data.classes, *parts)
    drawn = marked_reviews(260, workspace.seed)
    return LabelledSplits("synthetic-reviews", EraserMovies.classes, drawn[:160], drawn[160:200], drawn[200:])


def _n_probed(workspace: Workspace) -> int:
    return 8 if workspace.quick else 30


def _config(workspace: Workspace, model: str) -> ClassicConfig | Config:
    if model == "BiLSTM":
        return ClassicConfig(d_e=8, d_hidden=8, T_max=64) if workspace.quick else ClassicConfig(d_e=64, d_hidden=32)
    if workspace.quick:
        return Config(n_heads=2, T_max=64, d_e=8, d_att=4, d_out=4)
    return Config(n_heads=4, T_max=512, d_e=64, d_att=32, d_out=32)


def _measured(workspace: Workspace, splits: LabelledSplits, model: str, loss: str, seed: int) -> dict[str, float]:
    """Everything that is measured of one training run; a finished one is read from its file."""
    own = workspace.seed + seed

    def work() -> dict[str, float]:
        vocabulary = build_vocabulary([example.text for example in splits.train], 5)
        trainee = untrained(_config(workspace, model), vocabulary, splits.classes, own)
        recipe = FitRecipe(n_epochs=6, learning_rate=1e-2 if workspace.quick else 3e-3, seed=own)
        weights = {name: weight for name, weight in _WEIGHTS[model].items() if name == loss and name != _NONE}
        train_with_losses(trainee, splits, recipe, weights)
        return measure_attention(trainee, splits, _n_probed(workspace), workspace.seed)

    return dict(workspace.step(f"{model.replace(' ', '-').lower()}-{loss}-{seed}", work))


def _values(numbers: Numbers, model: str, loss: str, measure: str) -> list[float]:
    return column(numbers["runs"], "value", model=model, loss=loss, measure=measure)


def _change(numbers: Numbers, model: str, loss: str, measure: str) -> Mean:
    """The change of a measure by a loss, paired by seed."""
    after, before = (_values(numbers, model, one, measure) for one in (loss, _NONE))
    return mean_over_seeds(np.subtract(after, before).tolist())


def _before_and_after(numbers: Numbers, model: str, loss: str, measure: str) -> str:
    """The means over the trainings that have a value before and after, and their change."""
    change = _change(numbers, model, loss, measure)
    pairs = np.array([_values(numbers, model, one, measure) for one in (_NONE, loss)])
    before, after = pairs[:, ~np.isnan(pairs).any(axis=0)].mean(axis=1) if change.n else (nan, nan)
    interval = f" [{change.low:+.3f}, {change.high:+.3f}]" if change.has_interval else ""
    few = f", {change.n} of {pairs.shape[1]} trainings" if change.n < pairs.shape[1] else ""
    return f"{before:.3f} → {after:.3f} ({change.value:+.3f}{interval}{few})"


def _promised(numbers: Numbers, model: str, loss: str, promise: Promise) -> Claim:
    """Whether a loss has the effect that its source claims, on texts that it was not trained on."""
    change = _change(numbers, model, loss, promise.measure)
    low, high = sorted((promise.sign * change.low, promise.sign * change.high))
    verdict: ClaimVerdict = "agrees" if low > 0 else "differs" if high < 0 else "not measured"
    why = {
        "agrees": "The interval of the change does not contain 0.",
        "differs": "The change goes the other way.",
        "not measured": f"{change.n} trainings do not decide it: the interval of the change contains 0.",
    }
    return Claim(
        f"{loss}, {model}: {_MEASURES.get(promise.measure, promise.measure)}",
        promise.published,
        _before_and_after(numbers, model, loss, promise.measure),
        verdict,
        why[verdict],
    )


def _changed(numbers: Numbers, model: str, loss: str) -> Claim:
    """What a loss changes; a change whose interval contains 0 is not shown."""
    shown, hidden = [], []
    for measure, title in _MEASURES.items():
        change = _change(numbers, model, loss, measure)
        changes = change.has_interval and (change.low > 0 or change.high < 0)
        (shown if changes else hidden).append(f"{title} {_before_and_after(numbers, model, loss, measure)}")
    return Claim(
        f"{loss}, {model}: what changes?",
        "",
        "; ".join(shown) or "nothing is shown to change",
        "new",
        f"Not shown to change: {'; '.join(hidden) or 'nothing'}. Intervals are not corrected for the "
        f"{len(_MEASURES)} measures.",
    )


def _panel(axes: "Axes", numbers: Numbers, measure: str) -> None:
    """One measure of every model and loss: each training as a dot, and the mean with its interval."""
    names = [(model, loss) for model, of in _WEIGHTS.items() for loss in of]
    for place, (model, loss) in enumerate(names):
        values = _values(numbers, model, loss, measure)
        mean, colour = mean_over_seeds(values, _BOUNDS.get(measure, SHARES)), COLOURS[[*_WEIGHTS].index(model)]
        axes.plot(values, [-place] * len(values), ".", color=colour, alpha=0.4)
        arms = [[mean.value - mean.low], [mean.high - mean.value]] if mean.has_interval else None
        axes.errorbar([mean.value], [-place], xerr=arms, fmt="o", color=colour, markersize=4, capsize=2)
    axes.set_yticks([-place for place in range(len(names))])
    axes.set_yticklabels([f"{model}, {loss}" for model, loss in names], fontsize="small")
