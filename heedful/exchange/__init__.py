"""Explanations that others made, as explanations of ours: `read`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from heedful.document import Document, Unit, check_unit
from heedful.document.note import Note
from heedful.document.units import unit_scores
from heedful.errors import BadInput
from heedful.exchange import captum, inseq, lime, shap
from heedful.exchange.files import read_scores
from heedful.exchange.in_order import in_order
from heedful.exchange.numbers import MANY, Scored, fitted, numbers
from heedful.exchange.parsed import Opened, other_text
from heedful.exchange.pieces import Places, are_pieces, by_words, placed, token_row
from heedful.explanation import Explanation
from heedful.models import Model
from heedful.models.question import Input, Request, Wanted, ask
from heedful.target import Scale, Target

__all__ = ["read", "read_scores"]


@final
class _Opener(NamedTuple):
    """How a package's explanation is read: which class it is of, if it says so, and what is in it."""

    class_of: Callable[[Any, Document, tuple[str, ...]], int | str | None]
    opened: Callable[[Any, Document, Target, tuple[str, ...]], Opened]


_OPENERS = {
    ("lime", "Explanation"): _Opener(lime.class_of, lime.opened),
    ("shap", "Explanation"): _Opener(shap.class_of, shap.opened),
    ("captum", "VisualizationDataRecord"): _Opener(captum.class_of_record, captum.opened_record),
    ("captum", "LLMAttributionResult"): _Opener(captum.class_of_result, captum.opened_result),
    ("inseq", "FeatureAttributionOutput"): _Opener(inseq.class_of, inseq.opened),
    ("inseq", "FeatureAttributionSequenceOutput"): _Opener(inseq.class_of, inseq.opened),
}
_READ = " (read)"


def read(
    model: Model,
    text: Input,
    given: Any,
    *,
    name: str | None = None,
    target: Request = None,
    against: int | str | None = None,
    scale: Scale = "logit",
    unit: Unit | None = None,
    signed: bool | None = None,
) -> Explanation:
    """The explanation of a text that somebody else made, fitted to the units of the model.

    `given` is an array, list or tensor of numbers (one a unit; one a token, special tokens included or not; tokens ×
    embedding, which is summed); words with scores, as a dictionary or pairs such as lime's `as_list()`, or the pieces
    of the text in its order; an explanation of lime, shap, captum or inseq; or one of heedful's, or the path to a saved
    one. Without `unit` it is the unit there are as many of as numbers; of words with scores the type, each score being
    of the word wherever it stands; of pieces the word. Without `target` it is the class that `given` says it explains,
    or else the predicted one. Without `signed` it is whether a number is negative; lime and shap give a sign.

    The method is called `name`, or for the package, and always ends in "(read)", so that it is taken for none of ours.
    What was explained cannot be checked; where the package says what the model's output was, and it is not the
    target's value, a note says so. What special tokens got, or what the model did not read, is in the facts.
    """
    question = ask(model, [text], target, against, scale)
    document = question.documents[0]
    if unit is not None:
        check_unit(unit)
        document.unit_of(unit)
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise BadInput(f"A name is a string that is not empty; {name!r} was given.")
    given = Explanation.load(given) if isinstance(given, str | Path) else given
    opener = _opener_of(given)
    if isinstance(given, Explanation) and target is None and against is None:
        question = replace(question, wanted=Wanted(given.target.index, given.target.against, given.target.scale))
    elif opener is not None and target is None:
        meant = opener.class_of(given, document, model.classes)
        question = replace(question, wanted=question.wanted._replace(request=meant))
    goal = question.targets[0]
    output = float(goal.of(question.logits)[0])
    if isinstance(given, Explanation):
        found = _ours(given, document, goal, model, unit)
        method, said, error, settings = given.method, given.signed, found.error, given.settings
        scored, notes = Scored(found.unit, found.scores, found.facts), found.notes
    else:
        opened = opener.opened(given, document, goal, model.classes) if opener else _plain(given)
        method, said, error, settings = opened.package, opened.signed, None, {}
        scored = _scored(document, opened, unit, bool(opener))
        notes = tuple(Note(sentence, "read-in") for sentence in scored.notes)
        if opened.output is not None and not np.isclose(opened.output, output, rtol=1e-3, atol=1e-3):
            other = f"{method} explained a number that is {opened.output:.4g} for this text; {goal} is {output:.4g}."
            notes = (*notes, Note(other, "read-in"))
    negative = int((scored.scores < 0).sum())
    if signed is False and negative:
        raise BadInput(f"signed=False was said, and {negative} of {len(scored.scores)} scores are negative.")
    if not scored.scores.any():
        zero = f"All {MANY[scored.unit]} have score 0, so none is put before another."
        notes = (*notes, Note(zero, "uninformative"))
    method = method if name is None else name
    return Explanation(
        document=document,
        target=goal,
        unit=scored.unit,
        scores=scored.scores,
        output=output,
        method=method if method.endswith(_READ) else method + _READ,
        signed=bool(negative or said) if signed is None else signed,
        settings=settings,
        error=error,
        facts=dict(scored.facts),
        model=model.fingerprint,
        notes=(*document.notes, *notes),
    )


def _opener_of(given: object) -> _Opener | None:
    """How to read the explanation of a package that is known, without importing it."""
    names = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(given).__mro__]
    return next((_OPENERS[name] for name in names if name in _OPENERS), None)


def _plain(given: Any) -> Opened:
    """Numbers, or words with numbers."""
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, list | tuple) or not any(_is_pair(pair) for pair in pairs):
        if isinstance(given, Mapping):
            raise BadInput(f"Scores of words are words with a number each; {str(given)[:40]} was given.")
        return Opened("numbers", given)
    odd = [pair for pair in pairs if not _is_pair(pair)]
    if odd:
        raise BadInput(f"Scores of words are pairs of a word and a number; {str(odd[0])[:40]} was given.")
    return Opened("words", [score for _, score in pairs], tuple(word for word, _ in pairs))


def _is_pair(pair: object) -> bool:
    return isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)


def _scored(document: Document, opened: Opened, unit: Unit | None, known: bool) -> Scored:
    """The numbers fitted to the document's units."""
    values = numbers(opened.numbers)
    if opened.names is None and opened.places is None:
        scored = fitted(document, values, unit or (opened.unit if known else None))
    elif values.ndim > 1 or (opened.names is not None and len(values) != len(opened.names)):
        raise BadInput(f"Numbers of shape {values.shape} were given for {len(opened.names or ())} pieces of text.")
    elif opened.places is not None:
        scored = placed(document, unit or opened.unit, values, opened.places)
    else:
        names = opened.names or ()
        everywhere = () if known else by_words(document, names)
        lost = [name for name, spots in zip(names, everywhere, strict=False) if not spots]
        if everywhere and not lost and not are_pieces(document, names, everywhere):
            scored = placed(document, unit or "type", values, everywhere)
        elif (row := token_row(document, names, values)) is not None:
            scored = Scored(unit or opened.unit, *unit_scores(document, unit or opened.unit, row))
        else:
            scored = placed(document, unit or opened.unit, values, _in_order(document, names, lost))
    return replace(scored, facts={**scored.facts, **opened.facts}, notes=(*opened.notes, *scored.notes))


def _in_order(document: Document, names: tuple[str, ...], lost: list[str]) -> Places:
    """The places of pieces in reading order; or what is wrong with them, if they may have been words."""
    try:
        return in_order(document, names)
    except BadInput as error:
        if lost:
            rest = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            raise BadInput(f"{lost[0]!r}{rest} of {len(names)} words are not in the text; wanted: its words.") from None
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is None:
            raise
        raise BadInput(
            f"{twice!r} is named more than once, and the pieces are not in the order of the text ({error}) Name each "
            "word once, or give lime's explanation itself, which knows where each stands."
        ) from None


def _ours(given: Explanation, document: Document, goal: Target, model: Model, unit: Unit | None) -> Explanation:
    """An explanation of heedful's, if it is of this text, these units and this target."""
    if given.document.text != document.text and document.picture is not None:
        raise BadInput("The explanation is of another picture; explain the same pixels.")
    if given.document.text != document.text:
        raise other_text("heedful", given.document.text, document.text)
    if given.document.units(given.unit) != document.units(given.unit):
        n, own = len(given.scores), document.n_units(given.unit)
        raise BadInput(f"The explanation is of {n} {MANY[given.unit]}, and the model reads other ones, {own} of them.")
    if given.target != goal:
        raise BadInput(f"The explanation is of {given.target}, and {goal} was asked for; name the same, or no target.")
    kept = [note for note in given.notes if note not in document.notes]
    if given.model != model.fingerprint:
        kept.append(Note(f"It was made for another model, {given.model}.", "read-in"))
    found = given.to(unit or given.unit)
    return replace(found, notes=tuple(kept))
