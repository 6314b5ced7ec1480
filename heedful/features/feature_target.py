"""A feature as a target: how active it is in a text, explained as the class of a classifier is."""

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, final, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import Absence, Document
from heedful.document.note import Note
from heedful.errors import BadInput, Unsupported, in_short, unknown_name
from heedful.features.activations import find_site, is_read, stopped_behind
from heedful.features.dictionary import Dictionary
from heedful.models import Model, TargetOfModel
from heedful.models.attention_hook import Attended, Listener, heard, still
from heedful.models.fingerprint import own_fingerprint
from heedful.models.language.activations import Site
from heedful.models.layered import Derived, LayeredModel
from heedful.models.masked_forward import read_masked
from heedful.target import Scale, Target

At = Literal["max", "mean", "sum", "last"]
"""What is made of the values of a feature at the tokens of a text: the largest, the mean, the sum, or the last."""
Of = Literal["activation", "pre-activation"]
"""The value of a feature at a token: its activation, or the number that the rule turns into it."""
_WHERE = {"max": "at any token", "mean": "at any token", "sum": "at any token", "last": "at the last token"}
_ROWS = 4096


@final
@dataclass(frozen=True, eq=False)
class Feature(TargetOfModel):
    """How active a feature of a dictionary is in a text: a target of `explain`, `compare`, `trust` and `read`.

        heedful.explain(model, text, "shapley-sampled", target=heedful.Feature(dictionary, 1234))

    `at` says what is made of the values at the tokens: "max", "mean", "sum", or that of the "last" token. Only tokens
    of the text count: not special tokens, nor padding, nor words that a method has removed. `of="pre-activation"` is
    the value before the rule of the dictionary. It is useful where a feature is silent, for gradients are 0 there.
    """

    dictionary: Dictionary
    number: int
    at: At = "max"
    of: Of = "activation"

    def __post_init__(self) -> None:
        if not isinstance(self.dictionary, Dictionary):
            raise BadInput(
                "A feature belongs to a dictionary, such as heedful.features.load gives; "
                f"{in_short(self.dictionary)} was given."
            )
        self.dictionary.check_feature(self.number)
        for kind, value, known in (("value of a text", self.at, At), ("value of a token", self.of, Of)):
            if value not in get_args(known):
                raise unknown_name(kind, value, get_args(known))

    @property
    def name(self) -> str:
        """Its number and layer, and what is not by default, such as "feature 1234 of layer 3 (mean)"."""
        card = self.dictionary.card
        others = {"residual": card.part, "max": self.at, "activation": self.of}
        more = ", ".join(value for usual, value in others.items() if value != usual)
        return f"feature {self.number} of layer {card.layer}" + (f" ({more})" if more else "")

    def __repr__(self) -> str:
        return f"Feature({self.name}, dictionary {self.dictionary.fingerprint})"

    def model_for(self, model: Model) -> "FeatureOutput":
        """The model with this feature as its one output; a model that the dictionary does not belong to is refused."""
        if isinstance(model, Derived):
            raise BadInput("A feature is read from the network itself; give the model that this one was made from.")
        if not isinstance(model, LayeredModel):
            raise Unsupported(
                f"A feature is read from a layer, and this model has none that can be read ({model.family}); give the "
                "model that the dictionary belongs to."
            )
        self.dictionary.bound(model)
        own = self.dictionary.model
        if own is not None and own_fingerprint(own) != own_fingerprint(model):
            raise BadInput("The dictionary was loaded for another model; load it with this one.")
        if self.dictionary.card.layer < 0:
            raise BadInput("The dictionary belongs to no known layer of a model; train it with heedful.features.train.")
        return FeatureOutput(model, self)


@final
class FeatureOutput(Derived):
    """A model with one output: how active a feature is in the text. Every pass stops at the feature's layer.

    In a masked text the words that were removed do not count, whatever replaces them. Where no word is left
    the value is 0; that before the rule, unless it is a sum, is the one at b_dec, which no feature at all decodes to.

    Attention is that of the layers below the feature: those above cannot matter. It is read from the tokens that count;
    for the largest value from its token, or, where the feature is silent, from the one that is closest to active.
    """

    base: LayeredModel
    returns = "scores"
    outputs = "features"
    about_labels = "a feature has no classes"

    def __init__(self, base: LayeredModel, feature: Feature) -> None:
        dictionary, card = feature.dictionary, feature.dictionary.card
        self.base, self.part, self.layer = base, card.part, card.layer
        self.at: At = feature.at
        self.of: Of = feature.of
        self.classes = (feature.name,)
        self.family = f"{feature.name} of {base.family or type(base.network).__name__}"
        self.reads = "the last token of the text" if self.at == "last" else "the tokens of the text"
        self._about = f"{dictionary.fingerprint} {card.part} {card.layer} {feature.number} {feature.at} {feature.of}"
        self._dictionary, self._place = _narrowed(dictionary, feature.number, next(base.network.parameters()))
        self._kept: Bool[np.ndarray, "batch token"] | None = None
        """Which tokens of the copies in a pass were not removed; None where none was, or where those are gone."""
        lacks = _no_attention(self._site)
        self.withheld = {**base.withheld, **dict.fromkeys(("attention", "layers"), lacks)} if lacks else base.withheld
        if self.of == "activation":
            silent = f"Feature {feature.number} is not active {_WHERE[self.at]} of the text, so gradients are 0"
            self.note_of_zero = Note(f'{silent}; of="pre-activation" explains what it lacks.', "silent")

    @property
    def _site(self) -> Site:
        """Found for every pass: in a copy of the model it is another module."""
        return find_site(self.base, self.part, self.layer)

    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the model, the dictionary and the feature."""
        return hashlib.sha256(f"{self.base.fingerprint} {self._about}".encode()).hexdigest()[:16]

    def explained(self, scale: Scale) -> str:  # noqa: ARG002
        """The feature."""
        return self.classes[0]

    def encode(self, text: Any) -> Document:
        """The text as the model reads it."""
        return self.base.encode(text)

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch 1"]:
        """How active the feature is in each text, from those vectors."""
        x = stopped_behind(self.base, documents, self._site, embeddings, hidden)
        counts = self._counts(documents, embeddings.shape[1]).to(x.device)
        if hidden is not None:
            counts &= ~hidden
        if self._kept is not None:
            counts[:, : self._kept.shape[1]] &= torch.from_numpy(self._kept).to(x.device)
        counts = counts[:, : x.shape[1]]
        return self._pooled(self._values(x, counts, self.of), counts)[:, None]

    def _counts(self, documents: Sequence[Document], n_tokens: int) -> Bool[Tensor, "batch token"]:
        """Which positions are tokens of a text."""
        rows, site = np.zeros((len(documents), n_tokens), dtype=bool), self._site
        for row, document in zip(rows, documents, strict=True):
            row[: len(document.ids)] = is_read(self.base, document, site)
        return torch.from_numpy(rows)

    def _values(
        self, x: Float[Tensor, "batch token d_e"], counts: Bool[Tensor, "batch token"], of: Of
    ) -> Float[Tensor, "batch token"]:
        """The feature's value at every token that counts; 0 elsewhere."""
        compute = self._dictionary.encode if of == "activation" else self._dictionary.before_rule
        # A threshold in half precision would switch features on and off.
        with torch.autocast(x.device.type, enabled=False):
            rows = torch.cat([compute(some)[:, self._place] for some in x[counts].split(_ROWS)])
        return rows.new_zeros(counts.shape).masked_scatter(counts, rows)

    def _pooled(
        self, values: Float[Tensor, "batch token"], counts: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch"]:
        """One value of each text, from those of its tokens."""
        if self.at == "sum":
            return values.sum(dim=1)
        n = counts.sum(dim=1)
        if self.at == "mean":
            pooled = values.sum(dim=1) / n.clamp(min=1)
        elif self.at == "last":
            pooled = values.gather(1, _last(counts)[:, None])[:, 0]
        else:
            pooled = values.masked_fill(~counts, -inf).max(dim=1).values
        nothing = values.new_zeros(())
        if self.of == "pre-activation":
            nothing = self._dictionary.before_rule(self._dictionary.b_dec)[self._place]
        return torch.where(n > 0, pooled, nothing)

    def masked(
        self,
        document: Document,
        target: Target,
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
        at_once: int | None = None,
    ) -> Float[np.ndarray, "mask"]:
        """The feature's value at every mask over tokens; what is removed does not count."""
        reader, n = copy(self), self.masks_at_once(document, None) if at_once is None else at_once

        def before(kept: Bool[np.ndarray, "batch token"]) -> None:
            reader._kept = kept

        def read(values: Tensor) -> Float[np.ndarray, "batch *_"]:
            return target.of(values.double().cpu().numpy())

        return read_masked(reader, document, keep, absence, n, read, before)

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener gets every attention call below the feature."""
        return self.base.listening(listener)

    @torch.no_grad()
    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position at the feature's layer in its value."""
        rows = torch.zeros_like(self.base.readout(documents))
        counts = self._counts(documents, rows.shape[1]).to(rows.device)
        if self.at in ("mean", "sum"):
            return counts.to(rows) / counts.sum(dim=1, keepdim=True)
        place = _last(counts) if self.at == "last" else self._strongest(documents, counts)
        return rows.scatter(1, place[:, None], 1.0)

    def _strongest(self, documents: Sequence[Document], counts: Bool[Tensor, "batch token"]) -> Tensor:
        """The token of each text with the largest activation, or with the largest value before the rule."""
        with still(self.network), heard(self.network, Attended.output):
            x = stopped_behind(self.base, documents, self._site)
        values = self._values(x, counts, self.of)
        silent = (values <= 0).all(dim=1, keepdim=True)
        if self.of == "activation" and silent.any():
            values = torch.where(silent, self._values(x, counts, "pre-activation"), values)
        return values.masked_fill(~counts, -inf).argmax(dim=1)

    def placed(
        self, documents: Sequence[Document], own: Float[Tensor, "batch _"], source: Float[Tensor, "batch _"] | None
    ) -> Float[Tensor, "batch token"]:
        """Values in the order of the tokens."""
        return self.base.placed(documents, own, source)

    def n_sources(self, documents: Sequence[Document]) -> int:
        """The number of positions of the source; 0 if there is none."""
        return self.base.n_sources(documents)

    def bytes_a_document(self, n_tokens: int) -> int:
        """The model's estimate; a pass that stops early needs less."""
        return self.base.bytes_a_document(n_tokens)


def _no_attention(site: Site) -> str:
    """Why attention below a site is not offered; empty if it is."""
    if site.source:
        return "The feature belongs to the encoder, and only attention from the decoder to the encoder can be read."
    if site.part == "residual" and site.layer == 0:
        return "The feature reads what enters layer 0, and there is no attention below it."
    return ""


def _last(counts: Bool[Tensor, "batch token"]) -> Tensor:
    """The last token of each text that counts."""
    return counts.shape[1] - 1 - counts.flip(1).int().argmax(dim=1)


def _narrowed(dictionary: Dictionary, number: int, like: Tensor) -> tuple[Dictionary, int]:
    """The dictionary as exact as the model's weights, and the feature's place in it; alone, if no other affects it."""
    rule, wide = dictionary.rule, torch.float64 if like.dtype == torch.float64 else torch.float32
    alone = rule.k is None and len(rule.thresholds) == 1
    some = slice(number, number + 1) if alone else slice(None)

    def fitted(tensor: Tensor) -> Tensor:
        return tensor.to(like.device, wide)

    return replace(
        dictionary,
        W_enc=fitted(dictionary.W_enc[some]),
        b_enc=fitted(dictionary.b_enc[some]),
        W_dec=fitted(dictionary.W_dec[some]),
        b_dec=fitted(dictionary.b_dec),
        rule=replace(rule, thresholds=fitted(rule.thresholds[:, some])),
        largest=dictionary.largest[some],
        density=dictionary.density[some],
        model=None,
    ), 0 if alone else number
