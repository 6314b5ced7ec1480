"""`steer`: what a model writes while one of its features is moved, beside two controls, with effects and costs."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, final, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.datasets.texts import holds_many, texts_in
from heedful.document import Document, check_text
from heedful.errors import BadInput, Unsupported, in_short, unknown_name
from heedful.family import check_seed
from heedful.features.activations import find_site, is_read
from heedful.features.clamp import changeable, length_of
from heedful.features.controls import Difference, How, Move, difference_in_means, difference_of_texts, random_direction
from heedful.features.dictionary import Dictionary
from heedful.features.labelled import Label, label_of, raised_label, repetition
from heedful.features.steering import FEATURE, MEANS, MEASURES, RANDOM, UNCHANGED, Run, Steering
from heedful.generation.beam import Beam
from heedful.generation.generate import check_length, configured, room_left, written_text
from heedful.generation.many_prompts import continue_all
from heedful.generation.prompt import read_prompt
from heedful.generation.strategies import Strategy
from heedful.models import Model
from heedful.models.attention_hook import still
from heedful.models.fingerprint import own_fingerprint
from heedful.models.language import LanguageModel
from heedful.models.language.activations import Site, replace_at
from heedful.progress import Progress, progress_of, show_progress
from heedful.run_folder import RunFolder

_AT_ONCE = 32
"""Prompts that are a step of a resumable run, and write side by side."""


def steer(
    dictionary: Dictionary,
    feature: int,
    prompts: Any,
    *,
    model: Model | None = None,
    strength: int | float | str = "5x",
    how: How = "clamp",
    words: str | Sequence[str] | None = None,
    examples: Any = None,
    strategy: str = "nucleus",
    max_new: int = 40,
    seed: int = 0,
    curve: Sequence[float] = (0.2, 0.4, 2.0),
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
    which a stopped run is resumed by the same call. `progress` is called with the prompts done in all runs.

    References: Templeton et al., *Scaling Monosemanticity*, 2024; Wu et al., *AxBench*, arXiv:2501.17148, in which
    difference in means is better at steering than autoencoders.
    """
    task = _task(dictionary, feature, _texts(prompts, "prompts"), model, strength, how, words, strategy, max_new, seed)
    given, factors = None if examples is None else _examples(examples), _factors(curve)
    folder = None if out is None else RunFolder(Path(out))
    with progress_of(progress, "prompts") as watch, nullcontext() if folder is None else folder.alone():
        if folder is not None:
            folder.claim({**task.identity, "examples": _hash(given), "curve": list(factors)})
        runs = _Runs(task, folder, watch, (1 + 3 * len(factors)) * len(task.prompts))
        return _measure(task, runs, given, factors)


@final
@dataclass(frozen=True, eq=False)
class _Task:
    """What was asked for, checked."""

    model: LanguageModel
    dictionary: Dictionary
    feature: int
    how: How
    c: float
    strength: str
    label: Label
    rule: Strategy
    max_new: int
    seed: int
    prompts: tuple[str, ...]
    documents: tuple[Document, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """How texts are written."""
        return {"strategy": self.rule.name, **asdict(self.rule), "max_new": self.max_new, "seed": self.seed}

    @property
    def identity(self) -> dict[str, Any]:
        """What the runs depend on, but for the examples and the curve."""
        who = {"dictionary": self.dictionary.fingerprint, "model": own_fingerprint(self.model)}
        what = {"feature": self.feature, "how": self.how, "c": self.c, "words": list(self.label.words)}
        return {"kind": "steering", **who, **what, **self.settings, "prompts": _hash(self.prompts)}


def _task(
    dictionary: Dictionary,
    feature: int,
    prompts: Sequence[str],
    model: Model | None,
    strength: int | float | str,
    how: How,
    words: str | Sequence[str] | None,
    strategy: str,
    max_new: int,
    seed: int,
) -> _Task:
    """The task; what makes no sense is refused before anything is written."""
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
    check_length(max_new)
    check_seed(seed)
    rule = configured(strategy, {})
    if isinstance(rule, Beam):
        raise BadInput(
            "Beam search draws nothing, so its runs are not paired; give greedy, sampling, top-k or nucleus."
        )
    label = raised_label(dictionary, j, base) if words is None else label_of(base, words)
    documents = tuple(_read(base, number, prompt) for number, prompt in enumerate(prompts, start=1))
    largest = float(dictionary.largest[j])
    times = f" ({c / largest:.3g}x its largest activation)" if largest > 0 else ""
    shown = f"{c:.3g}{times}"
    return _Task(base, dictionary, j, how, c, shown, label, rule, int(max_new), int(seed), tuple(prompts), documents)


def _read(model: LanguageModel, number: int, prompt: str) -> Document:
    try:
        document = read_prompt(model, prompt)
        room_left(model, document)
    except BadInput as error:
        raise BadInput(error.sentence, f"Prompt {number}", ": ") from None
    return document


@final
class _Runs:
    """Runs of all prompts, part by part; with a folder every part is kept there."""

    def __init__(self, task: _Task, folder: RunFolder | None, watch: Progress, total: int) -> None:
        self.task, self.folder, self.watch, self.total, self.done = task, folder, watch, total, 0
        self.site = find_site(task.model, task.dictionary.card.part, task.dictionary.card.layer)

    def of(self, name: str, factor: float, references: Sequence[Sequence[int]] | None, move: Move | None) -> list[Any]:
        """What was written and measured after every prompt; without references the written texts are these."""
        rows: list[Any] = []
        for start in range(0, len(self.task.documents), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            fixed = None if references is None else references[some]
            work = partial(self._part, self.task.documents[some], fixed, move)
            key = f"{name.replace(' ', '-')}-{factor:g}-{start}"
            rows += work() if self.folder is None else self.folder.step(key, work)
            self.done += len(self.task.documents[some])
            self.watch(self.done, self.total)
        return rows

    def _part(
        self, documents: Sequence[Document], references: Sequence[Sequence[int]] | None, move: Move | None
    ) -> list[dict[str, Any]]:
        task = self.task
        with nullcontext() if move is None else move.on(task.model):
            written = continue_all(task.model, documents, task.rule, task.max_new, task.seed)
        fixed = written if references is None else references
        rows = []
        for document, ids, reference in zip(documents, written, fixed, strict=True):
            text = written_text(task.model, document, ids)
            share, again = task.label.share(text), repetition(text)
            label, norm, size = self._effect(document, reference, move)
            log_p = _log_probabilities(task.model, task.model.continued(document, ids[:-1]), len(ids))
            values = {
                "words": 100 * share,
                "texts": float(share > 0),
                "log-probability": label,
                "surprise": -float(log_p[torch.arange(len(ids)), torch.tensor(ids)].mean()),
                "repetition": again,
            }
            rows.append({"ids": list(ids), "text": text, "norm": norm, "size": size, "values": values})
        return rows

    def _effect(self, document: Document, ids: Sequence[int], move: Move | None) -> tuple[float, float, float]:
        """The mean log-probability of a labelled token over a fixed text, and the mean lengths of move and activation.

        The activations are recorded at the site before and behind the change.
        """
        task, whole = self.task, self.task.model.continued(document, list(ids[:-1]))
        change = nullcontext() if move is None else move.on(task.model)
        with _recorded(self.site) as before, change, _recorded(self.site) as behind:
            log_p = _log_probabilities(task.model, whole, len(ids))
        places = torch.from_numpy(np.flatnonzero(is_read(whole, self.site)))
        x, moved = (torch.cat(parts, dim=1)[0, places.to(parts[0].device)].double() for parts in (before, behind))
        label = log_p[:, list(task.label.tokens)].logsumexp(dim=1).mean()
        return float(label), float((moved - x).norm(dim=1).mean()), float(x.norm(dim=1).mean())


@contextmanager
def _recorded(site: Site) -> Iterator[list[Tensor]]:
    """Inside this context the list receives the activations that reach the site at this point."""
    kept: list[Tensor] = []

    def keep(_: Site, x: Tensor) -> Tensor:
        kept.append(x.detach().clone())
        return x

    hook = replace_at(site, keep)
    try:
        yield kept
    finally:
        hook.remove()


@torch.no_grad()
def _log_probabilities(model: LanguageModel, document: Document, n_last: int) -> Float[Tensor, "query vocabulary"]:
    """The log-probabilities of the token after each of the last positions, in double precision."""
    with still(model.network):
        logits = model.token_logits(model.embed([document]), [document], None, n_last)[0]
    return logits.double().log_softmax(dim=-1).cpu()


def _measure(task: _Task, runs: _Runs, given: Any, factors: Sequence[float]) -> Steering:
    """Every run, and the result of them all."""
    plain = runs.of(UNCHANGED, 0.0, None, None)
    references, j = [row["ids"] for row in plain], task.feature
    difference = _difference(task, given, [row["text"] for row in plain])
    random = random_direction(task.dictionary, j, task.seed)
    directions = {FEATURE: task.dictionary.W_dec[j], MEANS: difference.u, RANDOM: random}
    results = [_run(UNCHANGED, 0.0, 0.0, plain)]
    for factor in factors:
        for name, u in directions.items():
            move = Move(task.dictionary, j, task.how, factor * task.c, u)
            results.append(_run(name, factor, move.c, runs.of(name, factor, references, move)))
    return Steering(
        feature=j,
        how=task.how,
        strength=task.strength,
        largest=float(task.dictionary.largest[j]),
        label=task.label,
        prompts=task.prompts,
        runs=tuple(results),
        examples=difference.about,
        cosines={name: float(u @ directions[FEATURE]) for name, u in directions.items() if name != FEATURE},
        size=float(np.mean([row["size"] for row in plain])),
        cut_short=any(room_left(task.model, document) < task.max_new for document in task.documents),
        settings=task.settings,
        place=task.dictionary.card.place,
        model=own_fingerprint(task.model),
        dictionary=task.dictionary.fingerprint,
    )


def _run(direction: str, factor: float, c: float, rows: Sequence[Mapping[str, Any]]) -> Run:
    values = {name: np.array([row["values"][name] for row in rows], dtype=np.float64) for name in MEASURES}
    norm = float(np.mean([row["norm"] for row in rows]))
    return Run(direction, factor, c, norm, tuple(row["text"] for row in rows), values)


def _difference(task: _Task, given: Any, texts: Sequence[str]) -> Difference:
    """The difference in means of the examples, by default of the prompts with what was written after them."""
    model, dictionary = task.model, task.dictionary
    if isinstance(given, tuple):
        return difference_of_texts(dictionary, model, *([model.encode(text) for text in own] for own in given))
    own = [f"{prompt}{text}" for prompt, text in zip(task.prompts, texts, strict=True)] if given is None else given
    return difference_in_means(dictionary, model, [model.encode(text) for text in own], task.label)


def _examples(examples: Any) -> list[str] | tuple[list[str], list[str]]:
    """Texts, or a pair of texts with a property and texts without it."""
    if isinstance(examples, tuple) and len(examples) == 2 and all(map(holds_many, examples)):
        return _texts(examples[0], "examples with the property"), _texts(examples[1], "examples without it")
    return _texts(examples, "examples")


def _texts(data: Any, things: str) -> list[str]:
    texts = list(texts_in(data, "test").texts)
    if not texts:
        raise BadInput(f"There are no {things}; give at least one text.")
    return [check_text(text) for text in texts]


def _factors(curve: Sequence[float]) -> tuple[float, ...]:
    numbers = [] if isinstance(curve, str) or not isinstance(curve, Sequence) else list(curve)
    valid = [isinstance(own, int | float) and not isinstance(own, bool) and 0 < own < np.inf for own in numbers]
    if len(numbers) != len(curve) or not all(valid):
        raise BadInput(f"curve is a list of numbers above 0, multiples of the strength; {in_short(curve)} was given.")
    return tuple(sorted({1.0, *map(float, numbers)}))


def _hash(texts: Any) -> str:
    return hashlib.sha256(json.dumps(texts).encode("utf-8", "backslashreplace")).hexdigest()[:16]
