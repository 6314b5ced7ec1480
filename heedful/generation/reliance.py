"""`context`: which tokens of a generated text depend on its context, and on what in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.document import SPECIAL, Document, Unit
from heedful.document.note import Note
from heedful.errors import BadInput, MissingPackage, in_short, unknown_name
from heedful.explainers import methods
from heedful.explainers.planning import configure_for
from heedful.explanation import Setting
from heedful.family import setting_types
from heedful.generation.attribute import FEW, output_of
from heedful.generation.attribution import Attribution
from heedful.generation.continuation import Continuation, Foil
from heedful.generation.dependence import dependence, null_contexts, output_p_values, token_p_values
from heedful.generation.explained import Task, explained
from heedful.generation.generation import Generation
from heedful.generation.prompt import read_prompt, split_passages
from heedful.generation.written import fixed, groups_of, with_output
from heedful.models import Model, check_offers
from heedful.models.budget import Budget
from heedful.models.language import LanguageModel, check_writes
from heedful.perturb.masks import generator
from heedful.progress import Progress, progress_of, show_progress
from heedful.run_folder import sealed, unsealed, write_file

_FORMAT = "heedful/reliance/1"
_CHOSEN = Note(
    "The output was written with the context, which makes its tokens likely there whatever the context says; each null "
    "context counts by the token that it makes most likely itself."
)
_COLUMNS = ("kl", "log_p", "log_p_without", "p_value", "output_p_value")


@final
@dataclass(frozen=True, eq=False)
class Reliance:
    """Which tokens of an output depend on its context, and what in the context each of them came from.

    A token is reliant if the context makes it more likely than contexts do that say nothing about it; see `context`.
    """

    tokens: tuple[str, ...]
    kl: Float[np.ndarray, "token"]
    """KL(p with the context ‖ p without) of the distribution of each token."""
    log_p: Float[np.ndarray, "token"]
    """The log-probability of each token with the context."""
    log_p_without: Float[np.ndarray, "token"]
    """Its log-probability without the context."""
    p_value: Float[np.ndarray, "token"]
    """Of each token by itself: (1 + null contexts with at least its statistic) / (1 + null contexts)."""
    output_p_value: Float[np.ndarray, "token"]
    """The same, corrected for the number of tokens."""
    attribution: Attribution
    """From units of the context: the log-probability of every token, less that of the other token that is most likely
    without the context."""
    settings: Mapping[str, str | int | float]
    """alpha, null, n_null and seed."""
    facts: Mapping[str, int | float]
    notes: tuple[Note, ...] = ()

    @property
    def difference(self) -> Float[np.ndarray, "token"]:
        """The probability with the context less the probability without."""
        return np.exp(self.log_p) - np.exp(self.log_p_without)

    @property
    def p_cxmi(self) -> Float[np.ndarray, "token"]:
        """log p with the context less log p without, in nats (Fernandes et al., 2023, arXiv:2109.07446)."""
        return self.log_p - self.log_p_without

    @property
    def reliant(self) -> Bool[np.ndarray, "token"]:
        """Whether each token depends on the context more than on null contexts, at the error rate alpha."""
        # Shares of counts: 2/40 is 0.05 up to rounding.
        return self.output_p_value <= float(self.settings["alpha"]) + 1e-12

    @cached_property
    def cues(self) -> dict[int, tuple[tuple[str, float, float | None], ...]]:
        """For every reliant token, by its number, the three strongest units of the context, with score and half-width
        of the 95 % interval."""
        strongest = {}
        for place in np.flatnonzero(self.reliant).tolist():
            rows = sorted(self.attribution.explanations[place].as_rows(), key=lambda row: -abs(row["score"]))
            strongest[place] = tuple((row["unit"], row["score"], row["error"]) for row in rows[:3])
        return strongest

    def as_rows(self) -> list[dict[str, Any]]:
        """One dictionary for every token."""
        columns = {name: getattr(self, name).tolist() for name in (*_COLUMNS, "difference", "p_cxmi", "reliant")}
        return [
            {
                "token": token,
                **{name: values[place] for name, values in columns.items()},
                "cues": "; ".join(unit for unit, _, _ in self.cues.get(place, ())),
            }
            for place, token in enumerate(self.tokens)
        ]

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row for every token."""
        try:
            import pandas
        except ImportError as error:
            raise MissingPackage("to_frame needs pandas: pip install pandas, or use as_rows().") from error
        return pandas.DataFrame(self.as_rows())

    def as_dict(self) -> dict[str, Any]:
        """All fields except the seconds, ready for JSON."""
        return {
            "format": _FORMAT,
            "tokens": list(self.tokens),
            **{name: getattr(self, name).tolist() for name in _COLUMNS},
            "attribution": self.attribution.as_dict(),
            "settings": dict(self.settings),
            "facts": {name: value for name, value in self.facts.items() if name != "seconds"},
            "notes": [note.as_dict() for note in self.notes],
        }

    def save(self, path: str | Path) -> None:
        """Writes a file by its ending: .json, which `Reliance.load` reads back, or .html."""
        path = Path(path)
        if path.suffix.lower() == ".json":
            write_file(path, sealed(self.as_dict()))
        elif path.suffix.lower() == ".html":
            # As `Attribution.save`: drawings are on the value.
            from heedful.render.reliance import reliance_page

            write_file(path, reliance_page(self))
        else:
            raise BadInput(f"A reliance is written as .json or .html; {path.name!r} was given.")

    @staticmethod
    def load(path: str | Path) -> "Reliance":
        """Loads a file that `save` wrote; a file that was changed since is refused."""
        try:
            kept = unsealed(Path(path).read_text(encoding="utf-8"))
            if kept["format"] != _FORMAT:
                raise ValueError(f"its format is {in_short(kept['format'])}")
            columns = [np.array(kept[name], dtype=np.float64) for name in _COLUMNS]
            tokens, attribution = tuple(map(str, kept["tokens"])), Attribution.from_dict(kept["attribution"])
            if {len(tokens), len(attribution.outputs)} != {len(column) for column in columns}:
                raise ValueError("its columns are not of one length")
            notes = tuple(map(Note.of, kept["notes"]))
            return Reliance(tokens, *columns, attribution, kept["settings"], kept["facts"], notes)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{Path(path).name} is not a reliance that heedful saved ({error}).") from error

    def __repr__(self) -> str:
        shown = ", ".join(repr(self.tokens[place]) for place in list(self.cues)[:5])
        more = ", …" if len(self.cues) > 5 else ""
        return (
            f"<{len(self.cues)} of {len(self.tokens)} tokens rely on the context{f': {shown}{more}' if shown else ''}>"
        )

    def _repr_html_(self) -> str:
        from heedful.render.reliance import reliance_fragment

        return reliance_fragment(self)


def context(
    model: Model,
    context: str | Sequence[str],
    prompt: str,
    output: "str | Sequence[int] | Generation | None" = None,
    *,
    method: str = "shapley-sampled",
    unit: Unit | None = None,
    alpha: float = 0.05,
    null: str = "foreign",
    foreign: Sequence[str] | None = None,
    n_null: int = 39,
    seed: int = 0,
    chat: bool | None = None,
    max_new: int = 40,
    memory: str | int | float | None = None,
    progress: Progress | bool | None = show_progress,
    **settings: object,
) -> Reliance:
    """Which tokens of an output depend on the context, and which units of the context each of them came from.

    As PECoRe (Sarti et al., 2024, arXiv:2310.01188): first what the context changes at every token of the output, then
    the sources of the contrast between the token and the one that the model prefers without the context. `output` None
    is what the model writes greedily with the context, at most `max_new` tokens. The output is held fixed.

    Differs from the paper: a token depends on the context not if its statistic is one standard deviation above the mean
    of the output, but if its P-CXMI is larger than what contexts cause that say nothing about it. The context is
    replaced by `n_null` null contexts of the same shape: sentences about other things ("foreign", 60 bundled English
    ones unless texts are given as `foreign`), or its own words in random order ("shuffled"). If the context was drawn
    like them, and the output given without regard to it, any token is called reliant with probability at most `alpha`.

    An output that the model wrote with the context was chosen by it, which raises its P-CXMI whatever the context says.
    Therefore each null context then counts by the token that it makes most likely itself. This has less power, and no
    exact error rate beyond the first token.

    `method` finds the sources, and has the other keywords as settings. They are units of the context: its sentences, or
    the words of a single sentence, unless `unit` chooses others.
    """
    start, writer = perf_counter(), check_writes(model)
    _check(alpha, n_null)
    asked, bare = read_prompt(writer, prompt, context, chat), read_prompt(writer, prompt, None, chat)
    if asked.passages is None:
        raise BadInput("There is no context; give at least one passage.")
    whole = with_output(writer, asked, output_of(writer, prompt, asked, output, context, chat, max_new))
    ids = whole.ids[len(asked.ids) :].tolist()
    drawn = null_contexts(split_passages(context), null, foreign, n_null, generator(seed, whole))
    nulls = [_read_null(writer, prompt, passages, chat, ids) for passages in drawn]
    with progress_of(progress, "null contexts") as watch:
        measured = dependence(writer, [whole, *nulls], with_output(writer, bare, ids), watch)
    with progress_of(progress, "masks") as watch:
        budget = Budget.of(memory, None, watch)
        attribution = _sources(writer, asked, whole, measured.instead, method, unit, budget, settings)
    chosen = output is None or isinstance(output, Generation)
    statistic = measured.own_gains if chosen else measured.gains
    asked_for = {"alpha": alpha, "null": null, "n_null": n_null, "seed": seed}
    facts = {"texts": n_null + 2, "masks": attribution.facts["masks"], "seconds": perf_counter() - start}
    p_values = token_p_values(statistic), output_p_values(statistic)
    notes = (*([_CHOSEN] if chosen else []), *attribution.notes)
    columns = measured.kl, measured.log_p, measured.log_p_without
    return Reliance(attribution.outputs, *columns, *p_values, attribution, asked_for, facts, notes)


def _check(alpha: float, n_null: int) -> None:
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise BadInput(f"alpha is an error rate above 0 and below 1; {in_short(alpha)} was given.")
    if isinstance(n_null, bool) or not isinstance(n_null, int) or not 1 <= n_null <= 100_000:
        raise BadInput(f"n_null is a whole number of null contexts, at least 1; {in_short(n_null)} was given.")
    if 1 / (1 + n_null) > alpha + 1e-12:
        fewest = int(np.ceil(1 / alpha - 1 - 1e-9))
        raise BadInput(f"With {n_null} null contexts no p-value can be {alpha:g}; give n_null={fewest} or more.")


def _read_null(
    writer: LanguageModel, prompt: str, passages: Sequence[str], chat: bool | None, ids: Sequence[int]
) -> Document:
    """The output behind a null context and the prompt."""
    try:
        return with_output(writer, read_prompt(writer, prompt, passages, chat), ids)
    except BadInput as error:
        raise BadInput(
            f"The model cannot read a null context: {error} "
            "Null contexts have about as many words as the context; shorten it, or give other texts as foreign."
        ) from error


def _sources(
    writer: LanguageModel,
    asked: Document,
    whole: Document,
    instead: Int[np.ndarray, "token"],
    method: str,
    unit: Unit | None,
    budget: Budget,
    settings: Mapping[str, object],
) -> Attribution:
    """The attribution of every token, against another, to units of the context; the rest is never removed."""
    start, document = perf_counter(), _only_context(whole)
    names, positions = groups_of(whole, len(instead), "tokens")
    chosen = unit or ("sentence" if document.n_units("sentence") > 1 else "word")
    if method not in methods():
        raise unknown_name("method", method, methods())
    # A sentence of unknown tokens disturbs the model more than one that is not there.
    absence = {"absence": "delete"} if "absence" in setting_types(methods()[method]) else {}
    explainer = configure_for(writer, method, {**absence, **settings, "unit": chosen}, FEW)
    check_offers(writer, explainer.needs, explainer.name)
    others = Continuation(writer, names, positions, written=tuple(instead.tolist()))
    foil = Foil(others, document, tuple(range(len(document.ids))))
    task = Task(writer, asked, document, "tokens", "log-probability")
    explanations, n_masks = explained(task, foil, explainer, budget)
    notes = tuple(dict.fromkeys(note for explanation in explanations for note in explanation.notes))
    facts = {"masks": n_masks, "seconds": perf_counter() - start}
    asked_for: dict[str, Setting] = {"of": "tokens", "measure": "contrast", "against": None, "in_context": True}
    return Attribution(whole, names, positions, len(instead), explanations, facts, notes, asked_for)


def _only_context(whole: Document) -> Document:
    """The document with units in its context alone."""
    assert whole.passages is not None
    inside = (whole.passages != SPECIAL) & (fixed(whole).words != SPECIAL)
    words = np.full(len(whole.ids), SPECIAL, dtype=np.int64)
    words[inside] = np.unique(whole.words[inside], return_inverse=True)[1]
    return replace(whole, words=words)
