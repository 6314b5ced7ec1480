"""The result of steering: what a model wrote unchanged, with a feature moved, and with two controls moved as far."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import exp, inf, isnan
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Float

from heedful.errors import unknown_name
from heedful.explanation import Setting
from heedful.features.controls import How
from heedful.features.labelled import Label
from heedful.run_folder import path_of
from heedful.statistics.quantity import Quantity, mean_over_texts

UNCHANGED, FEATURE, MEANS, RANDOM = "unchanged", "feature", "difference in means", "random direction"
CONTROLS = (MEANS, RANDOM)
Measured = Literal["words", "texts", "log-probability", "surprise", "repetition"]
MEASURES: Mapping[Measured, str] = {
    "words": "labelled words per 100 words written",
    "texts": "share of texts with a labelled word",
    "log-probability": "log-probability that a labelled token comes next",
    "surprise": "surprise of the unchanged model, nats per token",
    "repetition": "share of repeated pairs of words",
}
"""What is measured of every prompt. The third is a mean over the tokens of a fixed text, without sampling noise."""


@final
@dataclass(frozen=True, eq=False)
class Run:
    """What the model wrote after every prompt while its activations were moved in one way."""

    direction: str
    factor: float
    """The length of the move, as a multiple of the strength; 0 if nothing is moved."""
    c: float
    """What the feature is clamped to, or the length that is added."""
    norm: float
    """The mean length of the move at the site, measured over the tokens of the fixed texts."""
    texts: tuple[str, ...]
    values: Mapping[str, Float[np.ndarray, "prompt"]]
    """Of every measure one value per prompt; NaN where it has none."""


@final
@dataclass(frozen=True, eq=False)
class Steering:
    """A feature that was moved while a model wrote, beside two controls that move the activations exactly as far.

    Changes are paired: a prompt has the same random numbers in all runs. Intervals are over prompts.
    """

    feature: int
    how: How
    c: float
    """What the feature is clamped to, or the length that is added along it."""
    largest: float
    """The feature's largest activation; 0 if it was never active."""
    label: Label
    prompts: tuple[str, ...]
    runs: tuple[Run, ...]
    """Unchanged, then for every factor the feature, the difference in means, and the random direction."""
    examples: str
    """What the means were taken over."""
    cosines: Mapping[str, float]
    """Between the feature's direction and those of the controls."""
    size: float
    """The mean length of the activations at the site."""
    cut_short: bool
    """Whether the model had no room for all tokens after some prompts."""
    settings: Mapping[str, Setting]
    place: str
    model: str
    """The fingerprint of the model as it was; inside of `clamp` it is another one."""
    dictionary: str
    """The fingerprint of the dictionary."""

    def strength(self, factor: float = 1.0) -> str:
        """The activation or length in words."""
        c = factor * self.c
        return f"{c:.3g} ({c / self.largest:.3g}x its largest activation)" if self.largest > 0 else f"{c:.3g}"

    def run(self, direction: str = FEATURE, factor: float = 1.0) -> Run:
        """One of the runs."""
        runs = {(run.direction, run.factor): run for run in self.runs}
        if (key := (direction, 0.0 if direction == UNCHANGED else factor)) not in runs:
            raise unknown_name("run", f"{direction} × {factor:g}", [f"{name} × {own:g}" for name, own in runs])
        return runs[key]

    @property
    def factors(self) -> tuple[float, ...]:
        """The strengths of the curve, as multiples of the first."""
        return tuple(run.factor for run in self.runs if run.direction == FEATURE)

    def change(self, measure: Measured, direction: str = FEATURE, factor: float = 1.0) -> Quantity:
        """The mean change of a measure over the prompts, against the unchanged model."""
        return self._paired(measure, self.run(direction, factor), self.run(UNCHANGED))

    def lead(self, measure: Measured, control: str, factor: float = 1.0) -> Quantity:
        """How much larger the measure is with the feature than with a control."""
        return self._paired(measure, self.run(FEATURE, factor), self.run(control, factor))

    def perplexity(self, direction: str, factor: float = 1.0) -> float:
        """The perplexity of the written texts by the unchanged model, its geometric mean over prompts."""
        return exp(float(np.nanmean(self.run(direction, factor).values["surprise"])))

    @staticmethod
    def _paired(measure: Measured, one: Run, other: Run) -> Quantity:
        if measure not in MEASURES:
            raise unknown_name("measure", measure, MEASURES)
        differences = one.values[measure] - other.values[measure]
        most = _MOST.get(measure, inf)
        return mean_over_texts(differences[~np.isnan(differences)], (-most, most))

    @property
    def verdict(self) -> str:
        """Whether the text changes in the labelled direction more than with both controls, and what that costs."""
        cost = ", ".join(f"{rounded(self.perplexity(name))} with the {name}" for name in (FEATURE, *CONTROLS))
        return f"{self.verdict_on('words')} Perplexity: {rounded(self.perplexity(UNCHANGED))} unchanged, {cost}."

    def beaten(self, measure: Measured, factor: float = 1.0) -> tuple[str, ...]:
        """The controls whose change is smaller: their 95 % interval and that of the feature, above 0, are apart."""
        own, others = self.change(measure, FEATURE, factor), {}
        for name in CONTROLS:
            other = self.change(measure, name, factor)
            most = other.value if isnan(other.high) else other.high
            others[name] = inf if isnan(most) else max(0.0, most)
        return tuple(name for name, high in others.items() if own.low > high)

    def verdict_on(self, measure: Measured, factor: float = 1.0) -> str:
        """The same for one measure alone, at one strength of the curve."""
        own, what = self.change(measure, FEATURE, factor), MEASURES[measure]
        verb = "Clamping" if self.how == "clamp" else "Pushing along"
        end = " to" if self.how == "clamp" else " by a length of"
        subject = f"{verb} feature {self.feature}{end} {self.strength(factor)}"
        if len(self.prompts) < _FEWEST:
            return f"{subject}: an interval needs at least {_FEWEST} prompts, not {len(self.prompts)}."
        if not own.low > 0:
            lowers = own.high < 0
            return f"{subject} {'lowers' if lowers else 'does not measurably raise'} the {what}: {shown(own)}."
        controls = {name: self.change(measure, name, factor) for name in CONTROLS}
        beaten = self.beaten(measure, factor)
        sizes = ", ".join(f"{shown(other)} with the {name}" for name, other in controls.items())
        more = {2: "more than both controls", 1: f"more than the {beaten[0] if beaten else ''}"}
        than = more.get(len(beaten), "but not more than the controls")
        if len(beaten) == 1:
            than += f", but not more than the {next(name for name in CONTROLS if name not in beaten)}"
        return f"{subject} raises the {what} by {shown(own)}, {than} ({sizes})."

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of these numbers."""
        circular = (
            "The label comes from the feature's own direction through the output layer (logit lens), so the effect on "
            "these words is partly circular; give words= to test a label that was found otherwise."
        )
        no_token = (
            f"No whole token of the model: {', '.join(self.label.lost)}. Log-probabilities are of the other words."
        )
        times = self.perplexity(FEATURE) / self.perplexity(UNCHANGED)
        broken = (
            f"At this strength the text is no longer the model's own language: its perplexity is {times:,.0f} times "
            "that of the unchanged text. Compare weaker strengths."
        )
        short = "After some prompts the model had no room for all tokens."
        remarks = {
            circular: self.label.source == "logit lens",
            no_token: self.label.lost,
            broken: times > _BROKEN,
            short: self.cut_short,
        }
        return tuple(sentence for sentence, holds in remarks.items() if holds)

    def as_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        plain = {name: getattr(self, name) for name in ("feature", "how", "c", "largest", "examples", "size", "place")}
        runs = [
            {**asdict(run), "values": {name: [*map(_number, own)] for name, own in run.values.items()}}
            for run in self.runs
        ]
        lists = {
            "prompts": list(self.prompts),
            "runs": runs,
            "label": asdict(self.label),
            "cosines": dict(self.cosines),
        }
        who = {"settings": dict(self.settings), "model": self.model, "dictionary": self.dictionary}
        return {"kind": "steering", **plain, **lists, **who, "verdict": self.verdict, "notes": list(self.notes)}

    def save(self, path: str | Path) -> None:
        """Writes a page (.html) or all numbers and texts (.json)."""
        # Drawings are on the value, as of every result.
        from heedful.render import write

        write(self, path_of(path))

    def __repr__(self) -> str:
        return f"<{self.verdict}>"

    def _repr_html_(self) -> str:
        from heedful.render.features.steering_page import steering_page

        return steering_page(self, "cell.html")


_FEWEST, _BROKEN = 5, 10.0
_MOST: Mapping[Measured, float] = {"words": 100.0, "texts": 1.0, "repetition": 1.0}
"""The largest change that is possible."""


def shown(change: Quantity, style: str = "+.3g") -> str:
    """A change with its interval; where all prompts have the same change there is no interval."""
    if isnan(change.value):
        return "not known"
    mean = f"{change.value:{style}}"
    return f"{mean} in every text" if isnan(change.low) else f"{mean} [{change.low:{style}}, {change.high:{style}}]"


def rounded(value: float) -> str:
    """A number of three digits, large ones in full."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _number(value: float) -> float | None:
    return None if isnan(value) else float(value)
