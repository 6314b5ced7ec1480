"""`describe`: what the features of a dictionary are, read off texts."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.datasets import Split
from heedful.datasets.texts import Texts, sample_by_hash, texts_in
from heedful.errors import BadInput
from heedful.family import check_seed
from heedful.features.clamp import changeable
from heedful.features.dictionary import Dictionary
from heedful.features.reading.active import ActivePairs, ReadTexts, active_features, read_tokens
from heedful.features.reading.description import Description, Descriptions, check_place
from heedful.features.reading.excerpts import excerpts_of
from heedful.features.reading.raised import Readout, readout_of
from heedful.features.reading.token_rules import (
    LEAST_AUROC,
    LEAST_PRECISION,
    MEASURE,
    STRONG,
    Aspect,
    aspects_of,
    rules_of,
    split_texts,
)
from heedful.models import Model
from heedful.models.layered import LayeredModel
from heedful.progress import Progress, progress_of, show_progress
from heedful.statistics.intervals import TEXTS_FOR_INTERVAL

N_BINS = 20
_N_OUTPUTS = 10
_N_NEIGHBOURS = 5
_DIRECTIONS_AT_ONCE = 256


def describe(
    dictionary: Dictionary,
    texts: Any,
    *,
    model: Model | None = None,
    text: str | None = None,
    n_texts: int = 500,
    split: Split = "test",
    seed: int = 0,
    out: str | Path | None = None,
    progress: Progress | bool | None = show_progress,
) -> Descriptions:
    """Describes every feature that is active in some texts, without a language model.

    `texts` are a list, a table or file with a column `text`, or the name of a data set; up to `n_texts` are chosen by
    a hash. They are read by the dictionary's `model`. Each description has the strongest texts, the distribution of
    activations, the outputs that the direction raises and lowers, the nearest features, and a token rule as label,
    with its AUROC on texts that the rule was not made from. The `seed` draws which texts these are. `out` is a folder
    or an .html file that the descriptions are saved to.

    Memory: 17 bytes per token, the texts, and at most 0.7 GB for the pairs of tokens and active features; the texts
    are read again for the features whose pairs are beyond that.
    """
    check_seed(seed)
    if out is not None:
        check_place(out)
    own = changeable(dictionary, model)
    data = texts_in(texts, split, text, False)
    with progress_of(progress, "texts") as watch:
        descriptions = _descriptions(dictionary, own, data, sample_by_hash(data.texts, n_texts), seed, watch)
    if out is not None:
        descriptions.save(out)
    return descriptions


def _descriptions(
    dictionary: Dictionary, model: LayeredModel, data: Texts, places: Sequence[int], seed: int, watch: Progress
) -> Descriptions:
    if not places:
        raise BadInput("There are no texts; give at least one.")
    read = read_tokens(model, dictionary, [data.texts[n] for n in places], [data.ids[n] for n in places])
    part = split_texts([document.text for document in read.documents], seed)
    aspects, readout = aspects_of(read, part), readout_of(dictionary, model, read.documents)
    every = active_features(dictionary, model, read, watch)
    # In groups, the products with every direction and output are few and small.
    groups = iter(lambda: [*islice(every, _DIRECTIONS_AT_ONCE)], [])
    items = [item for some in groups for item in _described(dictionary, some, read, part, aspects, readout)]
    if not items:
        raise BadInput(
            "No feature is active in these texts; give other texts, or check which layer the features are of."
        )
    return Descriptions(
        tuple(items),
        dictionary.width,
        len(read.tokens),
        int(read.starts[-1]),
        _data(data, read),
        _about(dictionary),
        readout.about,
        _about_rules(part),
    )


def _described(
    dictionary: Dictionary,
    group: list[ActivePairs],
    read: ReadTexts,
    part: np.ndarray,
    aspects: tuple[Aspect, ...],
    readout: Readout,
) -> Iterator[Description]:
    numbers = torch.tensor([pairs.feature for pairs in group], device=dictionary.W_dec.device)
    directions = dictionary.W_dec[numbers]
    cosines = (directions @ dictionary.W_dec.T).scatter(1, numbers[:, None], -2.0)
    near = cosines.topk(min(_N_NEIGHBOURS, dictionary.width - 1))
    outputs = readout.outputs(directions, _N_OUTPUTS)
    for row, pairs in enumerate(group):
        largest = float(pairs.values.max())
        yield Description(
            feature=pairs.feature,
            density=len(pairs.rows) / int(read.starts[-1]),
            mean=float(pairs.values.mean(dtype=np.float64)),
            largest=largest,
            n_tokens=len(pairs.rows),
            n_texts=len(np.unique(read.text_of[pairs.rows])),
            histogram=np.histogram(pairs.values, N_BINS, (0.0, largest))[0],
            excerpts=excerpts_of(pairs, read),
            raised=tuple(outputs[row][0]),
            lowered=tuple(outputs[row][1]),
            neighbours=tuple(zip(near.indices[row].tolist(), near.values[row].tolist(), strict=True)),
            rules=rules_of(pairs, aspects, read, part),
        )


def _data(data: Texts, read: ReadTexts) -> str:
    n = len(read.tokens)
    return f"{data.name}, {n:,} texts" + (f" of {len(data):,}" if n < len(data) else "")


def _about(dictionary: Dictionary) -> str:
    card = dictionary.card
    model = f" of {card.model_name or 'the model'} {card.model}" if card.model else ""
    return f"{card.kind}, {dictionary.width:,} features of {card.place}{model}, fingerprint {dictionary.fingerprint}"


def _about_rules(part: np.ndarray) -> str:
    held = int((part == MEASURE).sum())
    return (
        "A rule names values of one aspect of a token, at most 32: the token, the one before, the second before, the "
        "next, the token with the one before, its first or last three letters, its kind, its place in the text. It is "
        f"made from {len(part) - held:,} texts and measured on {held:,} others; intervals are 95 %, over texts. AUROC: "
        "the share of pairs of an active and an inactive token that the rule puts in the right order; it favours rules "
        "that hold often, so read it with precision and recall. A token is strongly active above "
        f"{STRONG:g} of the largest activation in the texts that rules are made from. Without a rule of AUROC "
        f"{LEAST_AUROC:g}, above 0.5 with its interval, and precision {LEAST_PRECISION:g}, or active in fewer than "
        f'{TEXTS_FOR_INTERVAL} of the measured texts, a feature has "no rule".'
    )
