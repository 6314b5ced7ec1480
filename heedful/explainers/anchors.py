"""Anchors: a few units that keep the prediction, with a guaranteed precision (Ribeiro, Singh & Guestrin, 2018)."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import accumulate
from math import floor, inf, log, nextafter
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Bool, Float

from heedful.document import Absence, Document, Unit, check_absence
from heedful.document.note import Note
from heedful.document.units import plural
from heedful.errors import BadInput
from heedful.explainers import Group, MaskingExplainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.budget import Budget
from heedful.models.question import Wanted
from heedful.perturb.anchor_search import Anchor, Search, Stays, Terms
from heedful.perturb.forecast import MaskCount
from heedful.perturb.masks import generator
from heedful.perturb.rounds import stopped_note
from heedful.perturb.sweep import Interrupted, Sweep, spread_copies
from heedful.target import Target, own_scale

_LISTED = 1024
"""Up to this many masks, the model is evaluated on all of them and nothing is sampled."""
_RIVALS = 32
"""Up to this many classes, the target is compared with every other class."""
_PORTION = 128
_FEWEST = 20
_TRACE = 1e-6


@final
@dataclass(frozen=True)
class Anchors(MaskingExplainer):
    """Anchors: a few units that keep the prediction when other units are removed.

    The anchor's units are always kept; every other unit is kept with probability `presence`. The precision of an anchor
    is the share of such masked texts with the prediction of the whole text; it must be at least `threshold`. Its lower
    bound holds at `confidence` for all rules tested together, on samples that the search did not use. A unit's score is
    the precision that it added when it joined the anchor; units that help only together share theirs; all other units
    have 0. Texts of up to ten units are evaluated on every mask, which gives the smallest anchor without sampling. If
    `budget` masks give no anchor, the best rule is returned with a note. `facts["coverage"]` is the share of masked
    texts that keep the anchor, presence^size.

    The prediction is: whether the target is the predicted class; with `against`, which of the two classes is ahead;
    with a single output or independent labels, its sign (of a probability: whether it is above ½); with more than 32
    classes, whether the target keeps half of its probability. With 3 to 32 classes a masked text may be evaluated once
    more for each other class, which `facts["masks"]` counts.

    Reference: Ribeiro, Singh & Guestrin, 2018, AAAI; KL-LUCB: Kaufmann & Kalyanakrishnan, 2013. Differs from the paper:
    a sample counts for every candidate that it keeps; the result is tested on fresh samples; words are removed by
    `absence`, no language model proposes others; coverage is over masked texts, not over a data set.
    """

    name: ClassVar[str] = "anchors"
    group: ClassVar[Group] = "removal"
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    signed: ClassVar[bool] = False

    threshold: float = 0.95
    confidence: float = 0.95
    presence: float = 0.5
    beam_width: int = 2
    budget: int = 5000
    seed: int = 0
    absence: Absence = "replace"

    def __post_init__(self) -> None:
        check_absence(self.absence)
        for setting in ("threshold", "confidence", "presence"):
            if not 1e-6 <= (share := getattr(self, setting)) < 1:
                # Numbers underflow with smaller ones.
                raise BadInput(f"{self.name} needs a {setting} from 1e-6 to below 1; {share:g} was given.")
        if not 1 <= self.beam_width <= 100 or not 100 <= self.budget <= 1_000_000:
            raise BadInput(f"{self.name} takes a beam_width of 1 to 100 and a budget of 100 to 1,000,000 masks.")

    def n_masks(self, n_units: int) -> MaskCount:  # noqa: ARG002
        return MaskCount(self.budget, "budget")

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        document = question.documents[index]
        n_units = document.n_units(self.unit)
        if self.budget * n_units > 1_000_000_000:
            raise BadInput(
                f"{self.budget:,} masks of {n_units:,} {plural(self.unit)} need too much memory; lower budget."
            )
        listed = 2**n_units <= min(self.budget, _LISTED)
        same = SamePrediction(question, index, self.unit, self.absence, 2**n_units if listed else self.budget)
        terms = Terms(self.threshold, self.confidence, self.presence, self.beam_width, self.budget)
        try:
            if listed:
                result = exhaustive(n_units, same, terms)
            else:
                result = Search(n_units, same, terms, generator(self.seed, document)).run()
        except Interrupted:
            raise KeyboardInterrupt from None
        if result.stopped and result.n_fresh < _FEWEST:
            raise KeyboardInterrupt
        scores, error = np.zeros(n_units), np.zeros(n_units)
        scores[list(result.units)], error[list(result.units)] = together(result.gains, result.errors)
        facts = {
            "precision": result.precision,
            "precision_lower": result.lower,
            "base_precision": result.base,
            "coverage": self.presence ** len(result.units),
            "confidence": 1.0 if result.exact else self.confidence,
            "anchor_size": len(result.units),
            "rules_tested": result.n_tested,
            "masks": same.n_evaluated,
        }
        if not result.exact:
            facts["effective_samples"] = result.n_fresh
        sentence = self._sentence(document, result, same.sentence)
        notes = (Note(sentence, "result"), *self._warnings(result, same.n_evaluated), *same.notes)
        return self.explanation(question, index, scores, error, facts).noted(notes, result.examples)

    def _sentence(self, document: Document, result: Anchor, stays: str) -> str:
        names, what = document.units(self.unit), "word" if self.unit == "type" else self.unit
        share = f"in {_percent(result.precision)} of masked {'texts' if document.picture is None else 'images'}"
        sure = "" if result.exact else f", at least {_percent(result.lower)} at {_percent(self.confidence)} confidence"
        if not result.units:
            start = "No anchor is needed" if result.lower >= self.threshold else "No anchor was found"
            return f"{start}: with {what}s removed at random, {stays} {share}{sure}."
        often = Counter(names)
        quoted = [
            _quoted(names[unit]) + (f" ({what} {unit + 1})" if often[names[unit]] > 1 else "")
            for unit in sorted(result.units)
        ]
        held = " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
        kept = f"{100 * self.presence ** len(result.units):.2g} % of them keep {'it' if len(quoted) == 1 else 'these'}"
        return f"If {held} {'stays' if len(quoted) == 1 else 'stay'}, {stays} {share}{sure}; {kept}."

    def _warnings(self, result: Anchor, n_evaluated: int) -> tuple[Note, ...]:
        stopped = (stopped_note(n_evaluated, self.budget),) if result.stopped else ()
        if result.lower >= self.threshold - 1e-12:
            return stopped
        uncertain = f"The requested precision of {_percent(self.threshold)} is not certain"
        reason = "" if result.stopped else f": no anchor was found within {self.budget:,} masks, this is the best rule"
        return (*stopped, Note(f"{uncertain}{reason}.", "budget"))


@final
class SamePrediction:
    """Whether masked texts get the same prediction as the whole one; `sentence` says what that means."""

    def __init__(self, question: Question, index: int, unit: Unit, absence: Absence, expected: int) -> None:
        target, logits, returns = question.targets[index], question.logits[index], question.model.returns
        names = question.model.target_names(question.documents[index])
        own, name, n_classes = target.index, _quoted(names.shown(target.index)), len(logits)
        self.own = own
        self.hopeless, self.rivals = inf, list[int]()

        def sweep(goal: Target, budget: Budget) -> Sweep:
            own_question = replace(question, documents=(question.documents[index],), wanted=Wanted(goal), budget=budget)
            own_question.learn(torch.from_numpy(logits[None].copy()))
            return Sweep(own_question, 0, unit, absence)

        def goal_against(rival: int | None) -> Target:
            return Target(own, target.name, rival, own_scale(returns), returns)

        goal, self.threshold, self.whole = goal_against(None), 0.0, int(np.argmax(logits)) == own
        self.sentence = f"the prediction {'stays' if self.whole else 'stays other than'} {name}"
        if target.against is not None:
            goal = goal_against(target.against)
            self.whole = bool(logits[own] > logits[target.against])
            kind = "stays ahead of" if self.whole else "does not get ahead of"
            self.sentence = f"{name} {kind} {_quoted(names.shown(target.against))}"
        elif returns != "log-probabilities" and (n_classes == 1 or returns == "independent-logits"):
            self.threshold = 0.5 if returns == "probabilities" else 0.0
            self.whole = bool(logits[own] > self.threshold)
            self.sentence = f"{name} stays {'above' if self.whole else 'at or below'} {self.threshold:g}"
        elif n_classes == 2 and returns != "log-probabilities":
            goal = goal_against(1 - own)
            # argmax takes the first of equal logits.
            self.threshold = nextafter(0.0, -1.0) if own == 0 else 0.0
        elif n_classes <= _RIVALS and returns != "log-probabilities":
            # Any outputs can be ranked as if they were logits.
            goal = Target(own, target.name, None, "log-probability", "logits")
            self.threshold, self.hopeless = log(0.5) + 1e-9, log(1 / n_classes) - 1e-9
            self.rivals = [rival for rival in np.argsort(-logits, kind="stable").tolist() if rival != own]
        else:
            goal = Target(own, target.name, None, "log-probability", returns)
            self.whole, self.threshold = True, float(goal.of(logits[None])[0]) - log(2) - 1e-12
            self.sentence = f"{name} keeps at least half of its probability"
        quiet = replace(question.budget, watch=lambda *_: None)
        self.rival_sweeps = [sweep(goal_against(rival), quiet) for rival in self.rivals]
        self.first = sweep(goal, question.budget)
        self.first.expected = expected

    def __call__(self, keep: Bool[np.ndarray, "mask unit"]) -> Bool[np.ndarray, "mask"]:
        stays, evaluated = np.zeros((2, len(keep)), dtype=bool)
        # Which masks are evaluated for rivals depends on the values, so a portion that was stopped counts for nothing.
        portion = _PORTION if self.rivals else len(keep)
        for start in range(0, len(keep), portion):
            some = slice(start, start + portion)
            try:
                stays[some] = self._leads(keep[some]) == self.whole
            except Interrupted as stop:
                if not self.rivals:
                    stays, evaluated = (stop.values > self.threshold) == self.whole, stop.evaluated
                raise Interrupted(stays.astype(float), evaluated) from None
            evaluated[some] = True
        return stays

    def _leads(self, keep: Bool[np.ndarray, "mask unit"]) -> Bool[np.ndarray, "mask"]:
        values = self.first(keep)
        leads = values > self.threshold
        undecided = np.flatnonzero(~leads & (values >= self.hopeless))
        share = np.exp(np.minimum(values, 0.0))
        left = 1 - share
        for rival, sweep in zip(self.rivals, self.rival_sweeps, strict=True):
            if not len(undecided):
                break
            ahead = sweep(keep[undecided])
            left[undecided] -= share[undecided] * np.exp(-ahead)
            beaten = (ahead < 0) | ((ahead == 0) & (rival < self.own))
            # A class with more probability than all remaining rivals together is ahead of each of them.
            won = ~beaten & ((share[undecided] > left[undecided] + 1e-9) | (rival == self.rivals[-1]))
            leads[undecided[won]] = True
            undecided = undecided[~beaten & ~won]
        return leads

    @property
    def n_evaluated(self) -> int:
        """Masked copies that the model evaluated, once more for every rival class that it was compared with."""
        return self.first.n_evaluated + sum(sweep.n_evaluated for sweep in self.rival_sweeps)

    @property
    def notes(self) -> tuple[Note, ...]:
        return self.first.notes


def exhaustive(n_units: int, stays: Stays, terms: Terms) -> Anchor:
    """The smallest anchor, and among those of one size the most precise, from all masks without sampling."""
    codes = np.arange(2**n_units)
    keep = (codes[:, None] >> np.arange(n_units)) & 1 == 1
    size, p = keep.sum(axis=1), terms.presence
    same = stays(keep)
    precision = p**size * (1 - p) ** (n_units - size) * same
    for bit in range(n_units):
        # Every set sums the masks that keep all of it.
        pairs = precision.reshape(-1, 2, 2**bit)
        pairs[:, 0] += pairs[:, 1]
    precision = np.minimum(precision / p**size, 1.0)
    enough = np.flatnonzero(precision >= terms.precision - 1e-12)
    best = int(enough[np.lexsort((-precision[enough], size[enough]))[0]])
    path: list[int] = []
    while len(path) < size[best]:
        chosen = sum(1 << unit for unit in path)
        left = np.flatnonzero(keep[best & ~chosen])
        path.append(int(left[np.argmax(precision[chosen | 1 << left])]))
    steps = precision[list(accumulate((1 << unit for unit in path), initial=0))]
    gains, value = np.diff(steps), float(precision[best])
    held = np.flatnonzero(codes & best == best)
    examples = spread_copies(keep[held], same[held])
    return Anchor(tuple(path), value, value, float(steps[0]), gains, 0 * gains, 1, len(codes), examples, exact=True)


def together(
    gains: Float[np.ndarray, "step"], errors: Float[np.ndarray, "step"]
) -> tuple[Float[np.ndarray, "step"], Float[np.ndarray, "step"]]:
    """Gains with the same sum, none negative: units that help only with those after them share the gain with them.

    A unit of the anchor that added nothing has a score just above 0, so that the anchor can be read from the scores.
    """
    blocks: list[list[int]] = []
    for step in range(len(gains)):
        if blocks and gains[blocks[-1]].sum() <= 0:
            blocks[-1].append(step)
        else:
            blocks.append([step])
    while len(blocks) > 1 and gains[blocks[-1]].sum() <= 0:
        last = blocks.pop()
        blocks[-1] += last
    shared, widths = np.zeros(len(gains)), np.zeros(len(gains))
    for block in blocks:
        shared[block], widths[block] = max(_TRACE, float(gains[block].mean())), errors[block].mean()
    return shared, widths


def _percent(share: float) -> str:
    """A share in per cent, rounded down so that it never promises too much."""
    return f"{floor(1000 * share + 1e-6) / 10:g} %"


def _quoted(text: str) -> str:
    short = text if len(text) <= 40 else f"{text[:39]}…"
    return f'"{short}"' if short.isprintable() else repr(short)
