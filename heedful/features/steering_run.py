"""`steer`: what a model writes while one of its features is moved, beside two controls, with effects and costs."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, get_args

import numpy as np

from heedful.datasets.texts import holds_many, texts_in
from heedful.document import Document, check_text
from heedful.errors import BadInput, Unsupported, in_short, unknown_name
from heedful.family import check_seed
from heedful.features.activations import find_site
from heedful.features.clamp import changeable, length_of
from heedful.features.controls import Difference, How, Move, difference_in_means, difference_of_texts, random_direction
from heedful.features.dictionary import Dictionary
from heedful.features.labelled import label_of, raised_label
from heedful.features.steered_texts import Runs, Writing
from heedful.features.steering import FEATURE, MEANS, RANDOM, UNCHANGED, Steering
from heedful.generation.beam import Beam
from heedful.generation.generate import check_length, configured, room_left
from heedful.generation.prompt import read_prompt
from heedful.models import Model
from heedful.models.language import LanguageModel
from heedful.progress import Progress, progress_of, show_progress
from heedful.run_folder import RunFolder, path_of


def steer(
    dictionary: Dictionary,
    feature: int,
    prompts: Any,
    *,
    model: Model | None = None,
    strength: int | float | str = "1x",
    how: str = "clamp",
    words: str | Sequence[str] | None = None,
    examples: Any = None,
    strategy: str = "nucleus",
    max_new: int = 40,
    seed: int = 0,
    curve: Any = (0.25, 0.5, 2.0),
    out: str | Path | None = None,
    progress: Progress | bool | None = show_progress,
) -> Steering:
    """What a language model writes after prompts while a feature is clamped, beside two controls that move it as far.

    `prompts` are a list, a table or a file. The feature is clamped to `strength`, an activation or a multiple of its
    largest such as "5x"; with `how="push"` that length is added along its direction. The controls move the activations
    of every token by the same length along another direction: the difference in means of examples, and a random one.
    Effects are on the `words` that label the feature, by default those that its direction raises most.

    `examples` are texts: sentences with a labelled word are compared with the others, by default in what the unchanged
    model writes after the prompts. A pair (texts with the property, texts without it) compares these as a whole.
    `curve` are other strengths as multiples of the first, drawn as a curve; () leaves it out. `out` is a folder in
    which the same call resumes a stopped run. `progress` is called with the prompts done in all runs.

    References: Templeton et al., *Scaling Monosemanticity*, 2024; Wu et al., *AxBench*, arXiv:2501.17148, in which
    difference in means is better at steering than autoencoders.
    """
    move = _checked_move(dictionary, feature, model, strength, how)
    writing = _checked_writing(move, model, _texts(prompts, "prompts"), words, strategy, max_new, seed)
    given, factors = None if examples is None else _examples(examples), _checked_factors(curve)
    folder = None if out is None else RunFolder(path_of(out))
    with progress_of(progress, "prompts") as watch, nullcontext() if folder is None else folder.alone():
        if folder is not None:
            folder.claim(_identity(move, writing, given, factors))
        return _measured(move, Runs(writing, folder, watch, 1 + 3 * len(factors)), given, factors)


def _checked_move(
    dictionary: Dictionary, feature: int, model: Model | None, strength: int | float | str, how: Any
) -> Move:
    """The move along the feature itself."""
    j, base = dictionary.check_feature(feature), changeable(dictionary, model)
    if not isinstance(base, LanguageModel):
        raise Unsupported(
            "This model does not write text, so there is nothing to steer; heedful.features.effect removes features of "
            "a classifier and measures its outputs."
        )
    if how not in get_args(How):
        raise unknown_name("how", how, get_args(How))
    c = length_of(dictionary, j, strength)
    if not c > 0:
        raise BadInput(f'strength must be above 0, such as 4.0 or "5x"; {in_short(strength)} was given.')
    return Move(dictionary, j, how, c, dictionary.W_dec[j])


def _checked_writing(
    move: Move,
    model: Model | None,
    prompts: Sequence[str],
    words: str | Sequence[str] | None,
    strategy: str,
    max_new: int,
    seed: int,
) -> Writing:
    """How the prompts are continued; what cannot be done is refused before anything is written."""
    base, card = changeable(move.dictionary, model), move.dictionary.card
    assert isinstance(base, LanguageModel)
    check_length(max_new)
    check_seed(seed)
    rule = configured(strategy, {})
    if isinstance(rule, Beam):
        raise BadInput("Beam search draws nothing, so runs are not paired; give greedy, sampling, top-k or nucleus.")
    places: dict[str, int] = {}
    for number, prompt in enumerate(prompts, start=1):
        if (first := places.setdefault(prompt, number)) != number:
            raise BadInput(f"Prompts {first} and {number} are the same and would count twice; leave one out.")
    documents = tuple(_read(base, number, prompt) for number, prompt in enumerate(prompts, start=1))
    label = raised_label(move.dictionary, move.feature, base, documents) if words is None else label_of(base, words)
    return Writing(base, find_site(base, card.part, card.layer), label, documents, rule, int(max_new), int(seed))


def _read(model: LanguageModel, number: int, prompt: str) -> Document:
    try:
        document = read_prompt(model, prompt)
        room_left(model, document)
    except BadInput as error:
        raise BadInput(error.sentence, f"Prompt {number}", ": ") from None
    return document


def _measured(move: Move, runs: Runs, given: Any, factors: Sequence[float]) -> Steering:
    """Every run, and the result of them all."""
    writing, dictionary, j = runs.writing, move.dictionary, move.feature
    results = [runs.run(UNCHANGED)]
    difference = _difference(dictionary, writing, given, runs.fixed)
    directions = {FEATURE: move.u, MEANS: difference.u, RANDOM: random_direction(dictionary, j, writing.seed)}
    for factor in factors:
        for name, u in directions.items():
            results.append(runs.run(name, factor, Move(dictionary, j, move.how, factor * move.c, u)))
    return Steering(
        feature=j,
        how=move.how,
        c=move.c,
        largest=float(dictionary.largest[j]),
        label=writing.label,
        prompts=tuple(document.text for document in writing.documents),
        runs=tuple(results),
        examples=difference.about,
        cosines={name: float(u @ move.u) for name, u in directions.items() if name != FEATURE},
        size=runs.size,
        cut_short=any(room_left(writing.model, document) < writing.max_new for document in writing.documents),
        settings=writing.settings,
        place=dictionary.card.place,
        model=writing.model.fingerprint,
        dictionary=dictionary.fingerprint,
    )


def _difference(dictionary: Dictionary, writing: Writing, given: Any, written: Sequence[Sequence[int]]) -> Difference:
    """The difference in means of the examples, by default of the prompts with what was written after them."""
    model = writing.model
    if isinstance(given, tuple):
        return difference_of_texts(dictionary, model, *([model.encode(text) for text in own] for own in given))
    own = [model.continued(document, ids) for document, ids in zip(writing.documents, written, strict=True)]
    if given is None:
        return difference_in_means(dictionary, model, own, writing.label, "what the unchanged model wrote")
    return difference_in_means(dictionary, model, [model.encode(text) for text in given], writing.label)


def _examples(examples: Any) -> list[str] | tuple[list[str], list[str]]:
    """Texts, or a pair of texts with a property and texts without it."""
    if isinstance(examples, tuple) and len(examples) == 2 and all(map(holds_many, examples)):
        return _texts(examples[0], "examples with the property"), _texts(examples[1], "examples without it")
    return _texts(examples, "examples")


def _texts(data: Any, things: str) -> list[str]:
    texts = texts_in(data, "test").texts
    if not texts:
        raise BadInput(f"There are no {things}; give at least one text.")
    return [check_text(text) for text in texts]


def _checked_factors(curve: Any) -> tuple[float, ...]:
    """The strengths as multiples of the first, which is one of them."""
    listed = isinstance(curve, list | tuple)
    if not listed or not all(type(own) in (int, float) and 0 < own < np.inf for own in curve):
        raise BadInput(f"curve is a list of numbers above 0, multiples of the strength; {in_short(curve)} was given.")
    return tuple(sorted({1.0, *map(float, curve)}))


def _identity(move: Move, writing: Writing, given: Any, factors: Sequence[float]) -> dict[str, Any]:
    """What the runs in a folder depend on."""
    who = {"dictionary": move.dictionary.fingerprint, "model": writing.model.fingerprint}
    what = {"feature": move.feature, "how": move.how, "c": move.c, "words": list(writing.label.words)}
    texts = {"prompts": _hash([document.text for document in writing.documents]), "examples": _hash(given)}
    return {"kind": "steering", **who, **what, **writing.settings, **texts, "curve": list(factors)}


def _hash(texts: Any) -> str:
    return hashlib.sha256(json.dumps(texts).encode("utf-8", "backslashreplace")).hexdigest()[:16]
