"""`read`: imports explanations from other packages and from files."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float

from heedful.document import Document, Unit, check_unit
from heedful.document.note import Note
from heedful.document.units import unit_scores
from heedful.errors import BadInput
from heedful.exchange.captum import (
    class_of_captum_record,
    class_of_captum_result,
    parse_captum_record,
    parse_captum_result,
)
from heedful.exchange.files import read_scores
from heedful.exchange.in_order import find_in_order
from heedful.exchange.inseq import class_of_inseq, parse_inseq
from heedful.exchange.lime import class_of_lime, parse_lime
from heedful.exchange.numbers import MANY, FittedScores, fit_to_units, parse_numbers
from heedful.exchange.parsed import Parsed, another_text_error
from heedful.exchange.pieces import (
    Places,
    are_pieces,
    covers_words,
    find_words,
    share_scores,
    spelling_notes,
    token_row,
)
from heedful.exchange.shap import class_of_shap, parse_shap
from heedful.explanation import Explanation
from heedful.models import Model, TargetOfModel, model_and_target
from heedful.models.question import Input, Question, Request, Wanted, ask
from heedful.target import Scale, Target

__all__ = ["read", "read_scores"]


_READ = " (read)"


@final
class _Reader(NamedTuple):
    """How the explanation of a package is read: the class that it explains, if it says so, and its content."""

    class_of: Callable[[Any, Document, tuple[str, ...]], int | str | None]
    parse: Callable[[Any, Document, Target, tuple[str, ...]], Parsed]


_READERS = {
    ("lime", "Explanation"): _Reader(class_of_lime, parse_lime),
    ("shap", "Explanation"): _Reader(class_of_shap, parse_shap),
    ("captum", "VisualizationDataRecord"): _Reader(class_of_captum_record, parse_captum_record),
    ("captum", "LLMAttributionResult"): _Reader(class_of_captum_result, parse_captum_result),
    ("inseq", "FeatureAttributionOutput"): _Reader(class_of_inseq, parse_inseq),
    ("inseq", "FeatureAttributionSequenceOutput"): _Reader(class_of_inseq, parse_inseq),
}


def read(
    model: Model,
    text: Input,
    given: Any,
    *,
    name: str | None = None,
    target: Request | TargetOfModel = None,
    against: int | str | None = None,
    scale: Scale = "logit",
    unit: Unit | None = None,
    signed: bool | None = None,
) -> Explanation:
    """Imports an explanation of a text from another package, fitted to the units of the model.

    `given` is one of: numbers, as an array, list or tensor (one per unit; one per token, with or without special
    tokens; tokens × embedding, which is summed); words with scores, as a dictionary or as pairs such as lime's
    `as_list()`; pieces of the text in order, with scores; an explanation of lime, shap, captum, inseq or heedful; or
    the path of a saved heedful explanation. Default `unit`: the one whose number of units equals the number of scores;
    for words the type; for pieces the word. Default `target`: the class that `given` explains, or else the predicted
    class. Default `signed`: whether a score is negative; lime and shap are signed.

    The method is called `name`, or after the package, and always ends in "(read)". Whether the scores explain this
    model cannot be checked; if the package reports an output that is not the target's value, a note says so. Scores of
    special tokens, or of text that the model did not read, are in the facts.
    """
    model, request = model_and_target(model, target, against, scale)
    question = ask(model, [text], request, against, scale)
    _check(question.documents[0], unit, name)
    given = Explanation.load(given) if isinstance(given, str | Path) else given
    if target is None:
        question = _with_own_target(question, given, against)
    explanation = (
        _from_heedful(given, question, unit) if isinstance(given, Explanation) else _from_package(given, question, unit)
    )
    return _completed(explanation, name, signed)


def _check(document: Document, unit: Unit | None, name: str | None) -> None:
    """Refuses a unit that the document does not have, and an empty name."""
    if unit is not None:
        check_unit(unit)
        document.unit_of(unit)
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise BadInput(f"The name must be a non-empty string; {name!r} was given.")


def _reader_of(given: object) -> _Reader | None:
    """The reader for an explanation of a supported package; the package itself is not imported."""
    names = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(given).__mro__]
    return next((_READERS[name] for name in names if name in _READERS), None)


def _with_own_target(question: Question, given: Any, against: int | str | None) -> Question:
    """The question about the class that `given` says it explains, if it says so."""
    if isinstance(given, Explanation) and against is None:
        return replace(question, wanted=Wanted(given.target.index, given.target.against, given.target.scale))
    reader = _reader_of(given)
    if reader is None:
        return question
    index = reader.class_of(given, question.documents[0], question.model.classes)
    return replace(question, wanted=question.wanted._replace(request=index))


def _from_heedful(given: Explanation, question: Question, unit: Unit | None) -> Explanation:
    """An explanation of heedful, if it is of this text, these units and this target."""
    document, target = question.documents[0], question.targets[0]
    if given.document.text != document.text and document.picture is not None:
        raise BadInput("The explanation is of another image; explain the same pixels.")
    if given.document.text != document.text:
        raise another_text_error("heedful", given.document.text, document.text)
    if given.document.units(given.unit) != document.units(given.unit):
        n, own = len(given.scores), document.n_units(given.unit)
        raise BadInput(f"The explanation has {n} {MANY[given.unit]}; this model splits the text into {own}.")
    if given.target != target:
        raise BadInput(f"The explanation is of {given.target}, not of {target}; pass the same target, or none.")
    notes = [note for note in given.notes if note not in document.notes]
    if given.model != question.model.fingerprint:
        notes.append(Note(f"This explanation is of another model, {given.model}.", "read-in"))
    return replace(
        given.to(unit or given.unit),
        document=document,
        settings=given.settings,
        output=_output(question),
        model=question.model.fingerprint,
        notes=(*document.notes, *notes),
    )


def _from_package(given: Any, question: Question, unit: Unit | None) -> Explanation:
    """The explanation of another package, or plain numbers, fitted to the units of the document."""
    document, target, output = question.documents[0], question.targets[0], _output(question)
    reader = _reader_of(given)
    parsed = reader.parse(given, document, target, question.model.classes) if reader else _parse_plain(given)
    fitted = _fit(document, parsed, unit, is_plain=reader is None)
    sentences = [*parsed.notes, *fitted.notes]
    if parsed.output is not None and not np.isclose(parsed.output, output, rtol=1e-3, atol=1e-3):
        sentences.append(
            f"{parsed.package} explained an output of {parsed.output:.4g} for this text; {target} is {output:.4g}."
        )
    return Explanation(
        document=document,
        target=target,
        unit=fitted.unit,
        scores=fitted.scores,
        output=output,
        method=parsed.package,
        signed=bool(parsed.signed),
        settings={},
        error=None,
        facts={**fitted.facts, **parsed.facts},
        model=question.model.fingerprint,
        notes=(*document.notes, *(Note(sentence, "read-in") for sentence in sentences)),
    )


def _output(question: Question) -> float:
    return float(question.targets[0].of(question.logits)[0])


def _completed(explanation: Explanation, name: str | None, signed: bool | None) -> Explanation:
    """The explanation with its name, and signed or unsigned according to the user or the scores."""
    n_negative = int((explanation.scores < 0).sum())
    if signed is False and n_negative:
        raise BadInput(f"signed=False was given, but {n_negative} of {len(explanation.scores)} scores are negative.")
    notes = explanation.notes
    if not explanation.scores.any():
        zero = f"All {MANY[explanation.unit]} have score 0, so they cannot be ranked."
        notes = (*notes, Note(zero, "uninformative"))
    method = explanation.method if name is None else name
    return replace(
        explanation,
        method=method if method.endswith(_READ) else method + _READ,
        signed=bool(n_negative or explanation.signed) if signed is None else signed,
        notes=notes,
    )


def _parse_plain(given: Any) -> Parsed:
    """Numbers, or words with numbers."""
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, list | tuple) or not any(_is_pair(pair) for pair in pairs):
        if isinstance(given, Mapping):
            raise BadInput(f"The keys of a dictionary of scores must be words; {str(given)[:40]} was given.")
        return Parsed("numbers", given)
    odd = [pair for pair in pairs if not _is_pair(pair)]
    if odd:
        raise BadInput(f"Scores of words must be pairs of a word and a number; {str(odd[0])[:40]} was given.")
    return Parsed("words", [score for _, score in pairs], tuple(word for word, _ in pairs))


def _is_pair(pair: object) -> bool:
    return isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)


def _fit(document: Document, parsed: Parsed, unit: Unit | None, is_plain: bool) -> FittedScores:
    """The numbers as scores of the document's units."""
    values = parse_numbers(parsed.numbers)
    if parsed.names is None and parsed.places is None:
        return fit_to_units(document, values, unit or (None if is_plain else parsed.unit))
    if values.ndim > 1 or (parsed.names is not None and len(values) != len(parsed.names)):
        raise BadInput(
            f"{len(parsed.names or ())} pieces of text need one number each; the numbers have shape {values.shape}."
        )
    if parsed.places is not None:
        return share_scores(document, unit or parsed.unit, values, parsed.places)
    names = parsed.names or ()
    everywhere = find_words(document, names) if is_plain else ()
    missing = [name for name, places in zip(names, everywhere, strict=False) if not places]
    if everywhere and not missing and not are_pieces(document, names, everywhere):
        fitted = share_scores(document, unit or "type", values, everywhere)
        return replace(fitted, notes=(*fitted.notes, *spelling_notes(document, names, everywhere)))
    if is_plain:
        _check_not_by_size(names, values)
    row = token_row(document, names, values)
    if row is not None:
        return FittedScores(unit or parsed.unit, *unit_scores(document, unit or parsed.unit, row))
    places = _places_in_order(document, names, missing)
    if is_plain and _repeated(names) is not None and not covers_words(document, places):
        raise BadInput(
            f"{_repeated(names)!r} is named more than once, and some words of the text are not named at all, so its "
            f"places are not known. {_ADVICE}"
        )
    return share_scores(document, unit or parsed.unit, values, places)


_ADVICE = "Name each word once, or give lime's explanation itself, which has the position of each word."


def _repeated(names: tuple[str, ...]) -> str | None:
    """The first name that occurs twice and is a word."""
    return next((name for name in names if name.strip() and names.count(name) > 1), None)


def _check_not_by_size(names: tuple[str, ...], values: Float[np.ndarray, "piece"]) -> None:
    """Refuses names with a repeated word that are sorted by the size of their scores, as lime lists them."""
    sizes = np.abs(values)
    if _repeated(names) is not None and (np.diff(sizes) <= 0).all() and sizes[0] > sizes[-1]:
        raise BadInput(
            f"{_repeated(names)!r} is named more than once, and the list is sorted by size, so its places are not "
            f"known. {_ADVICE}"
        )


def _places_in_order(document: Document, names: tuple[str, ...], missing: list[str]) -> Places:
    """The spans of pieces in reading order. If the names may be words instead, the error says why they do not fit."""
    try:
        return find_in_order(document, names)
    except BadInput as error:
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise BadInput(
                f"{missing[0]!r}{more} of {len(names)} words are not in the text; give words of the text."
            ) from None
        repeated = _repeated(names)
        if repeated is None:
            raise
        raise BadInput(
            f"{repeated!r} is named more than once, and the pieces are not in the order of the text ({error}) {_ADVICE}"
        ) from None
