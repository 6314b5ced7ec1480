"""What a model computes with the reconstructions of a dictionary in the place of its activations."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isnan, nan
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import logsigmoid

from heedful.datasets import Split
from heedful.datasets.labels import class_numbers
from heedful.datasets.texts import Texts, sample_by_hash, texts_in
from heedful.document import SPECIAL, Document
from heedful.errors import BadInput
from heedful.family import check_count
from heedful.features.activations import find_site, is_read, text_rows
from heedful.features.dictionary import Dictionary
from heedful.features.quality import Quality, RowSums, Splice, mean_row, measure_rows
from heedful.models import Model, check_model
from heedful.models.attention_hook import still
from heedful.models.budget import PASS_MEMORY
from heedful.models.language import LanguageModel, first_tokens
from heedful.models.language.activations import Replacement, Site, record_activations, replaced_activations
from heedful.models.layered import LayeredModel
from heedful.models.recording import OneTower
from heedful.progress import Progress, progress_of, show_progress
from heedful.statistics.intervals import mean_intervals, wilson
from heedful.statistics.quantity import Quantity, ratio_of
from heedful.target import Returns

_AT_ONCE = 64
"""Predictions that are compared at once, in double precision."""


def measure_quality(
    dictionary: Dictionary,
    rows: Any = None,
    *,
    texts: Any = None,
    model: Model | None = None,
    text: str | None = None,
    label: Any = None,
    groups: Any = None,
    n_rows: int | None = None,
    n_texts: int = 300,
    split: Split = "test",
    batch_size: int = 1_024,
    progress: Progress | bool | None = show_progress,
) -> Quality:
    """How good a dictionary is, on rows of activations or on texts that its model reads.

    `rows` are an array, rows × dimensions, or a source, of which the first `n_rows` are read: a training on it begins
    with them. `groups` are the texts that the rows of an array come from; else they are taken to be independent.

    `texts` are a list, a table or file with columns `text` and `label`, or the name of a data set, of which up to
    `n_texts` are chosen by a hash. They are measured with the dictionary's `model`, which is then run with the
    reconstructions in the place of the activations of all tokens but the special ones: the loss is that of the next
    tokens, and of a classifier that of the labels, or of the model's own predictions if there are none. At most
    `batch_size` rows or tokens are computed at once, which does not change the result.
    """
    first = rows[0] if isinstance(rows, list | tuple) and rows else rows
    if (rows is None) == (texts is None) or isinstance(first, str | Path):
        raise BadInput("Give rows of activations, or texts=… with the model that reads them.")
    if texts is None:
        return measure_rows(dictionary, rows, groups, n_rows, batch_size)
    model = dictionary.model if model is None else model
    if model is None:
        raise BadInput("Texts are measured with the model of the dictionary; give it as model=.")
    check_model(model)
    dictionary, data = dictionary.bound(model), texts_in(texts, split, text, label)
    places = sample_by_hash(data.texts, n_texts)
    labels = labels_at(model, data, places)
    with progress_of(progress, "texts") as watch:
        return measure_texts(dictionary, [data.texts[place] for place in places], labels, batch_size, watch)


def labels_at(model: Model, data: Texts, places: Sequence[int]) -> list[int] | None:
    """The labels as classes of the model; None for a language model, and if some text has none."""
    if isinstance(model, LanguageModel) or any(data.labels[place] is None for place in places):
        return None
    numbers = class_numbers(data.labels, model.classes, data.classes, data.name)
    return [number for place in places if (number := numbers[place]) is not None]


def measure_texts(
    dictionary: Dictionary,
    texts: Sequence[Any],
    labels: Sequence[int] | None = None,
    batch_size: int = 1_024,
    watch: Progress = lambda *_: None,
) -> Quality:
    """The quality of a dictionary with its model on texts. Two passes over them: the first for the mean row."""
    check_count("batch_size", batch_size)
    if dictionary.card.layer < 0:
        raise BadInput("The dictionary does not say which layer its rows come from; measure it on rows.")
    assert dictionary.model is not None
    run = _SplicedModel(dictionary.model, find_site(dictionary.model, dictionary.card.part, dictionary.card.layer))
    documents = [_bare(document) for document in map(run.model.encode, texts)]
    batches = [*run.batches(documents, batch_size)]
    if not batches:
        raise BadInput("The texts contain no tokens but special ones; give texts with words.")
    # It refuses layers that run more than once, since every run would be replaced.
    record_activations(run.model, [documents[batches[0][0]]], [run.site])
    parts = ([documents[number] for number in batch] for batch in batches)
    sums = RowSums(dictionary, mean_row(text_rows(run.model, part, run.site).x for part in parts))
    groups: list[int] = []
    changes = []
    for done, batch in enumerate(batches, start=1):
        some = [documents[number] for number in batch]
        groups += [number for number in batch for _ in run.places(documents[number])]
        changes.append(run.changes(some, None if labels is None else [labels[number] for number in batch], sums))
        watch(done, len(batches))
    loss_of = "next tokens" if run.writes else "labels" if labels is not None else "own predictions"
    has_loss = run.model.returns != "scores"
    return replace(sums.result(groups), splice=_splice(np.concatenate(changes), loss_of) if has_loss else None)


def _bare(document: Document) -> Document:
    """What a pass needs of a document."""
    return document if document.picture is not None else first_tokens(document, len(document.ids))


@final
class _SplicedModel:
    """A model that is run on documents as it is, and with other rows at a site."""

    def __init__(self, model: Model, site: Site) -> None:
        assert isinstance(model, LayeredModel)
        self.model, self.site = model, site
        self.writes = isinstance(model, LanguageModel) and isinstance(model, OneTower)
        """Whether it predicts every next token of a text; a model with an encoder predicts what follows the text."""

    def places(self, document: Document) -> Int[np.ndarray, "_"]:
        """The tokens that have a row at the site."""
        return np.flatnonzero(is_read(self.model, document, self.site))

    def batches(self, documents: Sequence[Document], batch_size: int) -> Iterator[list[int]]:
        """The numbers of documents of one length that share a pass; those without a row are left out."""
        by_length: dict[int, list[int]] = {}
        for number, document in enumerate(documents):
            if len(self.places(document)):
                by_length.setdefault(len(document.ids), []).append(number)
        for length, numbers in sorted(by_length.items()):
            # The logits of two passes are kept at once.
            logits = 8 * len(self.model.classes) * (length if self.writes else 1)
            room = min(PASS_MEMORY // logits, self.model.masks_at_once(documents[numbers[0]], PASS_MEMORY))
            n = max(1, min(batch_size // length, room))
            yield from (numbers[start : start + n] for start in range(0, len(numbers), n))

    @torch.no_grad()
    def changes(
        self, documents: Sequence[Document], labels: Sequence[int] | None, sums: RowSums
    ) -> Float[np.ndarray, "document 3 6"]:
        """What `_compared` returns for each document, with reconstructions, zeros and the mean in the place of rows."""
        places = [self.places(document) for document in documents]
        index = np.repeat(np.arange(len(places)), [*map(len, places)]), np.concatenate(places)
        held: list[Tensor] = []

        def keep(_: Site, x: Tensor) -> Tensor:
            held.append(x[index])
            return x

        def put(rows: Tensor, _: Site, x: Tensor) -> Tensor:
            x = x.clone()
            x[index] = rows.to(x)
            return x

        own = self._logits(documents, keep)
        wanted = [
            None if labels is None else torch.tensor([label], device=held[0].device) for label in labels or places
        ]
        if self.writes:
            wanted = [torch.from_numpy(d.ids[1:][d.words[1:] != SPECIAL]).to(held[0].device) for d in documents]
        columns = []
        for rows in (sums.add(held[0].float()), torch.zeros_like(sums.mean), sums.mean):
            others = self._logits(documents, partial(put, rows))
            columns.append([_compared(*three, self.model.returns) for three in zip(own, others, wanted, strict=True)])
        return np.array(columns).swapaxes(0, 1)

    def _logits(
        self, documents: Sequence[Document], replacement: Replacement
    ) -> list[Float[Tensor, "prediction class"]]:
        """The logits of each document: of a classifier one row, else one before every token that is not special."""
        with still(self.model.network), replaced_activations(self.model, [self.site], replacement):
            e = self.model.embed(documents)
            if not (self.writes and isinstance(self.model, LanguageModel)):
                return [*self.model.forward(e, documents)[:, None]]
            rows = self.model.token_logits(e, documents, None, len(documents[0].ids))
        return [row[np.flatnonzero(d.words[1:] != SPECIAL)] for row, d in zip(rows, documents, strict=True)]


def _compared(
    own: Float[Tensor, "prediction class"],
    other: Float[Tensor, "prediction class"],
    wanted: Int[Tensor, "prediction"] | None,
    returns: Returns,
) -> Float[np.ndarray, "6"]:
    """The number of predictions, the sums of both losses and of KL(own ‖ other), and how many predictions are equal.

    Last, how many of the unchanged model's predictions are the wanted ones.
    """
    sums = np.zeros(6)
    for start in range(0, len(own), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        p, q = (_log_probabilities(logits[some].double(), returns) for logits in (own, other))
        choice = p.argmax(dim=-1) if wanted is None else wanted[some, None]
        losses = [-x.gather(-1, choice[..., None]).sum() for x in (p, q)]
        kl = torch.where(p > -inf, p.exp() * (p - q), 0.0).sum()
        n_same = (p.argmax(dim=-1) == q.argmax(dim=-1)).all(dim=-1).sum()
        n_right = (p.argmax(dim=-1) == choice).all(dim=-1).sum()
        sums += [len(p), *(float(number) for number in (*losses, kl, n_same, n_right))]
    return sums


def _log_probabilities(
    logits: Float[Tensor, "prediction class"], returns: Returns
) -> Float[Tensor, "prediction group option"]:
    """The log-probabilities of all classes, which exclude each other, or of each class and of its absence."""
    if returns == "independent-logits" or (returns == "logits" and logits.shape[-1] == 1):
        return torch.stack([logsigmoid(-logits), logsigmoid(logits)], dim=-1)
    return (logits.log() if returns == "probabilities" else logits).log_softmax(dim=-1)[:, None]


def _splice(changes: Float[np.ndarray, "document 3 6"], loss_of: str) -> Splice:
    n, loss = changes[:, 0, 0], changes[:, 0, 1]
    spliced, zero, mean = changes[:, :, 2].T
    kl, kl_zero, kl_mean = changes[:, :, 3].T
    n_same, n_right, n_all = int(changes[:, 0, 4].sum()), int(changes[:, 0, 5].sum()), int(n.sum())
    one_each = loss_of != "next tokens"
    return Splice(
        n_predictions=n_all,
        loss_of=loss_of,
        accuracy=Quantity(n_right / n_all, *wilson(n_right, n_all)) if loss_of == "labels" else Quantity(nan),
        loss=ratio_of(loss, n, (0.0, inf)),
        loss_spliced=ratio_of(spliced, n, (0.0, inf)),
        loss_zero=ratio_of(zero, n, (0.0, inf)),
        loss_mean=ratio_of(mean, n, (0.0, inf)),
        loss_recovered=_recovered(zero - spliced, zero - loss),
        loss_recovered_mean=_recovered(mean - spliced, mean - loss),
        kl=ratio_of(kl, n, (0.0, inf)),
        kl_score=ratio_of(kl_zero - kl, kl_zero),
        kl_score_mean=ratio_of(kl_mean - kl, kl_mean),
        agreement=Quantity(n_same / n_all, *wilson(n_same, n_all))
        if one_each
        else ratio_of(changes[:, 0, 4], n, (0.0, 1.0)),
    )


def _recovered(regained: Float[np.ndarray, "document"], lost: Float[np.ndarray, "document"]) -> Quantity:
    """The share of a loss that is regained; NaN where the ablation does not raise the loss measurably."""
    low = mean_intervals(lost[None])[0][0]
    return ratio_of(regained, lost) if (lost.sum() if isnan(low) else low) > 0 else Quantity(nan)
