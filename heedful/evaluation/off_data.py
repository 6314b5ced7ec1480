"""How far masked texts are from texts, and whether a model treats them differently."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, final

import numpy as np

from heedful.document import ABSENCES, Absence, check_absence
from heedful.errors import BadInput
from heedful.evaluation.sample import draw
from heedful.explainers.anchors import SamePrediction
from heedful.models import Model, check_model
from heedful.models.question import Question, ask
from heedful.perturb.detector import gone_of, masked_words, separation, words_read
from heedful.perturb.masks import generator, lime_masks, subsets
from heedful.run_folder import write_atomically
from heedful.statistics.quantity import Quantity, mean_over_texts


@final
class Treatment(NamedTuple):
    """What one absence does to texts and to the model's predictions."""

    absence: Absence
    separation: Quantity
    """The AUROC of a classifier that tells texts masked as by LIME from texts; ½ is chance, 1 is certain."""
    changed: Quantity
    """The share of texts whose prediction changes when a few words are removed."""
    exchanged: Quantity
    """The same, when the same words are exchanged for others."""
    difference: Quantity
    """`changed` − `exchanged` on the same texts."""

    @property
    def is_different(self) -> bool:
        """Whether predictions change more often when words are removed than when they are exchanged."""
        return self.difference.low > 0


@final
@dataclass(frozen=True)
class OffData:
    """Whether explanations by masked texts are about the model as it behaves on data; one row for each absence."""

    rows: tuple[Treatment, ...]
    n_texts: int
    share: float

    def __str__(self) -> str:
        lines = [f"{self.n_texts} texts; {self.share:.0%} of the words of each, at least one, removed or exchanged"]
        for row in self.rows:
            ends = "the model treats masked texts like texts, as far as these texts show"
            if row.is_different:
                ends = "the model treats masked texts differently from texts"
            elif row.difference.high < 0:
                ends = "fewer predictions change without the words than with other words"
            lines += [
                f"{row.absence}: masked texts are told from texts with AUROC {row.separation:.3f}",
                f"  predictions change in {row.changed:.3f} of texts without the words, in {row.exchanged:.3f}",
                f"  with other words; difference {row.difference:.3f}: {ends}",
            ]
        return "\n".join(lines)


def off_data(
    model: Model,
    dataset: Any,
    absences: str | Sequence[Absence] = ("replace", "delete"),
    *,
    n: int = 200,
    split: str = "test",
    share: float = 0.1,
    reference: Absence | None = None,
    seed: int = 0,
) -> OffData:
    """How far masked texts are from texts, and whether the model treats them differently, for each way of removing.

    Two measurements. (1) A small classifier that is fitted to other texts tells texts from their masked copies, masked
    as LIME masks them (`perturb/detector.py`): Hase, Xie & Bansal, 2021 (arXiv:2106.00786) on removal out of the
    distribution. (2) A `share` of the words is removed, and the same words are exchanged for words of the data, or
    by the absence `reference` (such as conditional:MODEL). Both take the same words away; one stays nearer to the data.
    A model that changes its prediction more often when words are removed reacts to the removal itself: a scaffolded
    classifier (Slack et al., 2020, arXiv:1911.02508; `heedful.scaffolded`), or an honest one that a replacement token
    misleads. The idea to compare outputs on masked inputs and on neighbours in the data: Carmichael & Scheirer, 2023
    (arXiv:2205.14772). A model that shows no difference may still treat rarer masks differently.
    """
    check_model(model)
    names = [absences] if isinstance(absences, str) else list(absences)
    for absence in (*names, *([] if reference is None else [reference])):
        # Blurred patches and what a language model writes are not asked about.
        check_absence(absence, tuple(name for name in ABSENCES if name not in ("blur", "cut")))
    if not names or not 0 < share < 1:
        raise BadInput(f"off_data needs at least one absence, and a share of words between 0 and 1; {share} was given.")
    sample = draw(dataset, n, split, seed)
    questions = [question for question in (ask(model, [text]) for text in sample.texts) if _is_long(question)]
    if len(questions) < 3:
        raise BadInput("off_data needs at least 3 texts of two words or more.")
    return OffData(tuple(_rows(questions, names, share, reference, seed)), len(questions), share)


def _rows(
    questions: Sequence[Question], names: Sequence[Absence], share: float, reference: Absence | None, seed: int
) -> Iterator[Treatment]:
    """The measurements of each absence."""
    model, documents = questions[0].model, [question.documents[0] for question in questions]
    sizes = [(document.n_units("word"), generator(seed, document)) for document in documents]
    masks = [lime_masks(d, 2, rng)[1] for d, rng in sizes]
    few = [~subsets(d, np.array([ceil(share * d)]), rng) for d, rng in sizes]
    with TemporaryDirectory() as folder:
        path = Path(folder, "texts.txt")
        write_atomically(path, "\n".join(" ".join(d.text.split()) for d in documents).encode("utf-8", "replace"))
        other = _changes(questions, few, reference or f"marginal:1:{seed}:{path}")
    for absence in names:
        copies = [masked_words(model, d, row, absence) for d, row in zip(documents, masks, strict=True)]
        apart = separation([words_read(document) for document in documents], copies, gone_of(model))
        own = _changes(questions, few, absence)
        changed, exchanged = (mean_over_texts(values, (0.0, 1.0)) for values in (own, other))
        yield Treatment(absence, apart, changed, exchanged, mean_over_texts(own - other, (-1.0, 1.0)))


def _is_long(question: Question) -> bool:
    return question.documents[0].n_units("word") > 1


def _changes(questions: Sequence[Question], masks: Sequence[np.ndarray], absence: Absence) -> np.ndarray:
    """1 for every text whose prediction changes on its mask, else 0."""
    stays = [SamePrediction(q, 0, "word", absence, 1)(keep)[0] for q, keep in zip(questions, masks, strict=True)]
    return 1.0 - np.array(stays, dtype=np.float64)
