"""The controls of steering: other directions along which activations are moved exactly as far as a feature moves them.

    clamp:  x ← x + (c − s_j(x)) u        push:  x ← x + c u,        ‖u‖ = 1

With u = d_j the first is the clamp of the feature. A change at a site does not change the activations that enter the
site, so at every token of the same text all directions move x by the same length.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import Document
from heedful.errors import BadInput
from heedful.features.activations import find_site, text_rows
from heedful.features.clamp import device_of, moved_by
from heedful.features.dictionary import Dictionary
from heedful.features.labelled import Label
from heedful.models.layered import LayeredModel

How = Literal["clamp", "push"]
_AT_ONCE = 64
"""Texts whose activations are in memory at once."""


@final
@dataclass(frozen=True, eq=False)
class Move:
    """A change of the activations: how far feature j would move them, but along a direction u of length 1."""

    dictionary: Dictionary
    feature: int
    how: How
    c: float
    u: Float[Tensor, "d_e"]

    @contextmanager
    def on(self, model: LayeredModel) -> Iterator[None]:
        """Inside this context every pass of the model goes on with moved activations at every token of a text."""
        device = str(device_of(model))
        here, u, j = self.dictionary.to(device), self.u.to(device), self.feature

        def added(x: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch token d_e"]:
            if self.how == "push":
                return (self.c * u).expand_as(x)
            return (self.c - here.encode(x)[..., j, None]) * u

        about = f"{self.how} {j} {self.c!r} {self.dictionary.fingerprint} {self.u.tolist()}"
        with moved_by(model, self.dictionary, added, about):
            yield


@final
@dataclass(frozen=True)
class Difference:
    """The direction from the mean activation without a property to that with it, and what the means were taken over."""

    u: Float[Tensor, "d_e"]
    about: str


def random_direction(dictionary: Dictionary, feature: int, seed: int) -> Float[Tensor, "d_e"]:
    """A direction that every other one is as likely as."""
    drawn = np.random.default_rng([seed, feature]).standard_normal(dictionary.d_e)
    return _unit(torch.from_numpy(drawn), dictionary)


def difference_in_means(
    dictionary: Dictionary,
    model: LayeredModel,
    documents: Sequence[Document],
    label: Label,
    of: str = "the examples",
) -> Difference:
    """The mean over the tokens of sentences with a labelled word, minus that over the tokens of the other sentences.

    Reference: Wu et al., *AxBench*, 2025, arXiv:2501.17148, Section 4 (DiffMean), whose texts are as short.
    """
    has = [
        np.array([label.share(sentence) > 0 for sentence in document.units("sentence")] or [False])
        for document in documents
    ]
    n_with, n_all = (sum(int(count(own)) for own in has) for count in (np.sum, len))
    if n_with in (0, n_all):
        which = "No sentence" if n_with == 0 else "Every sentence"
        raise BadInput(
            f"{which} of {of} contains a word of the label ({', '.join(label.words)}), so there is no difference in "
            "means; give examples with and without such words, as examples= or --examples."
        )
    inside = [own[document.unit_of("sentence")] for own, document in zip(has, documents, strict=True)]
    about = f"{n_with:,} sentences with a labelled word and {n_all - n_with:,} without"
    return Difference(_difference(dictionary, model, documents, inside), about)


def difference_of_texts(
    dictionary: Dictionary, model: LayeredModel, with_it: Sequence[Document], without: Sequence[Document]
) -> Difference:
    """The mean over the tokens of texts with a property, minus that over the tokens of texts without it."""
    inside = [
        np.full(len(document.ids), number == 0) for number, group in enumerate((with_it, without)) for document in group
    ]
    u = _difference(dictionary, model, [*with_it, *without], inside)
    return Difference(u, f"{len(with_it):,} texts with the property and {len(without):,} without")


def _difference(
    dictionary: Dictionary, model: LayeredModel, documents: Sequence[Document], inside: Sequence[Bool[np.ndarray, "_"]]
) -> Float[Tensor, "d_e"]:
    """The direction from the mean of the tokens that are not inside to that of those that are."""
    site = find_site(model, dictionary.card.part, dictionary.card.layer)
    sums, counts = torch.zeros(2, dictionary.d_e, dtype=torch.float64), np.zeros(2)
    for start in range(0, len(documents), _AT_ONCE):
        rows = text_rows(model, documents[start : start + _AT_ONCE], site)
        own = [inside[start + d][t] for d, t in zip(rows.document.tolist(), rows.token.tolist(), strict=True)]
        which = np.array(own)
        for side, chosen in enumerate((~which, which)):
            sums[side] += rows.x[torch.from_numpy(chosen)].double().sum(dim=0).cpu()
            counts[side] += chosen.sum()
    if not counts.all():
        raise BadInput("The examples with the property, or those without it, contain no words; give other texts.")
    return _unit(sums[1] / counts[1] - sums[0] / counts[0], dictionary)


def _unit(direction: Any, dictionary: Dictionary) -> Float[Tensor, "d_e"]:
    length = direction.norm()
    if not length > 0:
        raise BadInput("The means with and without the property are equal, so there is no direction between them.")
    return (direction / length).to(dictionary.W_dec)
