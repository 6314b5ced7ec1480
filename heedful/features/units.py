"""The features of a text as units of an explanation: which features an output depends on."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, NamedTuple, final, get_args
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import Absence, Document
from heedful.document.note import Note
from heedful.errors import BadInput, Unsupported, in_short, unknown_name
from heedful.explanation import Explanation
from heedful.family import check_count
from heedful.features.clamp import changeable, site_changed
from heedful.features.dictionary import Dictionary
from heedful.features.source import check_finite
from heedful.models import Model
from heedful.models.attention_hook import Attended, heard, still
from heedful.models.layered import LayeredModel
from heedful.statistics.intervals import mean_intervals
from heedful.target import Names, Target

By = Literal["contribution", "activation"]
"""What the units of a text are chosen by: the size of Σ_t s_j(x_t) d_j · ∇f, with f the lead of the most likely output
over the second, or Σ_t s_j(x_t)."""
_MOST = 1_000


@final
class _Behind(NamedTuple):
    """What is behind a document of features: the text, and of every unit its activations and its direction."""

    document: Document
    active: Float[Tensor, "token unit"]
    directions: Float[Tensor, "unit d_e"]


@final
class FeatureModel(Model):
    """The same model, whose documents have as units the features that are active in a text, at most `n`.

    Removing a unit holds the feature at 0 at every token: x ← x − s_j(x) d_j. Other features, and what the dictionary
    does not reconstruct, are never removed. Every method that needs masks alone explains it, such as Shapley values,
    Banzhaf values, LIME and leave-one-out.
    """

    def __init__(self, dictionary: Dictionary, base: LayeredModel, n: int, by: By) -> None:
        self.dictionary, self.base, self.n, self.by = dictionary, base, n, by
        self.inner = changeable(dictionary, base)
        self.classes, self.returns, self.outputs, self.reads = base.classes, base.returns, base.outputs, base.reads
        self.family = f"features of {base.family or type(base.network).__name__}"
        self._behind: WeakKeyDictionary[Document, _Behind] = WeakKeyDictionary()

    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of those of the model and of the dictionary."""
        about = f"{self.base.fingerprint} {self.dictionary.fingerprint} {self.n} {self.by}"
        return hashlib.sha256(about.encode()).hexdigest()[:16]

    def encode(self, text: Any) -> Document:
        """The features of a text, the strongest first; `ids` are their numbers."""
        document = self.base.encode(text)
        x, s, weight = self._measured(document)
        active = torch.nonzero((s > 0).any(dim=0))[:, 0].cpu().numpy()
        if not len(active):
            raise BadInput("No feature of the dictionary is active in the text, so there is nothing to explain.")
        chosen = active[np.argsort(-weight[active], kind="stable")[: self.n]]
        directions = self.dictionary.W_dec[torch.from_numpy(chosen)].to(x)
        strengths = s[:, torch.from_numpy(chosen).to(s.device)].to(x)
        names = [f"feature {number}" for number in chosen.tolist()]
        starts = np.cumsum([0, *(len(name) + 1 for name in names)]).tolist()
        rest = "every active feature is a unit" if len(chosen) == len(active) else "the others always stay"
        features = Document(
            text=" ".join(names),
            ids=chosen,
            pieces=tuple(names),
            spans=tuple((start, start + len(name)) for start, name in zip(starts, names, strict=False)),
            words=np.arange(len(chosen)),
            known=np.ones(len(chosen), dtype=bool),
            notes=(*document.notes, Note(f"{len(chosen):,} of {len(active):,} active features are units: {rest}.")),
        )
        self._behind[features] = _Behind(document, strengths, directions)
        return features

    def _measured(
        self, document: Document
    ) -> tuple[Float[Tensor, "token d_e"], Float[Tensor, "token feature"], Float[np.ndarray, "feature"]]:
        """The activations of a text at the site, those of its features, and what units are chosen by."""
        here, seen = self.dictionary.to(str(next(self.base.network.parameters()).device)), []

        def look(x: Tensor, is_text: Tensor) -> Tensor:
            seen[:] = x.detach().requires_grad_(), is_text
            return seen[0]

        with torch.enable_grad(), still(self.base.network), site_changed(self.inner, self.dictionary, look):
            logits = self.base.forward(self.base.embed([document]), [document])[0]
            best = logits.topk(min(2, len(logits))).values
            (slope,) = torch.autograd.grad(best[0] - best[1:].sum(), seen[0])
        with torch.no_grad():
            x = seen[0][0].detach()
            check_finite(x)
            s = here.encode(x) * seen[1][0, :, None]
            weight = s if self.by == "activation" else s * (slope[0].to(s) @ here.W_dec.T)
        return x, s, weight.sum(dim=0).abs().double().cpu().numpy()

    def predict(self, texts: Sequence[Any]) -> Float[np.ndarray, "batch class"]:
        """The model's outputs."""
        return self.base.predict(texts)

    def logits(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch class"]:
        """The model's outputs for the texts behind the documents."""
        return self.base.logits([self._of(document).document for document in documents])

    @torch.no_grad()
    def masked(
        self,
        document: Document,
        target: Target,
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
        at_once: int | None = None,
    ) -> Float[np.ndarray, "mask"]:
        """The target without the features that each mask removes; the absence is always "zero", the default too."""
        if absence not in ("replace", "zero"):
            raise Unsupported("A feature is removed by holding it at 0; leave absence out.")
        behind, values = self._of(document), []
        n = self.masks_at_once(document, None) if at_once is None else at_once
        for start in range(0, len(keep), n):
            gone = torch.from_numpy(~keep[start : start + n]).to(behind.active)

            def without(x: Tensor, _: Tensor, gone: Tensor = gone) -> Tensor:
                return x - (gone[:, None] * behind.active) @ behind.directions

            # A model that is heard reads every row in full; equal texts without different features share no prefix.
            with (
                still(self.base.network),
                heard(self.base.network, Attended.output),
                site_changed(self.inner, self.dictionary, without),
            ):
                e = self.base.embed([behind.document]).expand(len(gone), -1, -1)
                logits = self.base.forward(e, [behind.document] * len(gone))
            values.append(target.of(logits.double().cpu().numpy()))
        return np.concatenate(values)

    def masks_at_once(self, document: Document, memory: int | None) -> int:
        """As of the model itself."""
        return self.base.masks_at_once(self._of(document).document, memory)

    def target_names(self, document: Document | None) -> Names:
        """The model's own."""
        return self.base.target_names(None if document is None else self._of(document).document)

    def _of(self, document: Document) -> _Behind:
        if document not in self._behind:
            raise BadInput("These are not the features of a text that this model has read; give the text.")
        return self._behind[document]


def feature_model(dictionary: Dictionary, model: Model | None, n: int, by: By) -> FeatureModel:
    """A model with features as units, after checks; the model is given or the one that the dictionary is bound to."""
    check_count("n, the number of features of a text,", n, 1, _MOST)
    if by not in get_args(By):
        raise unknown_name("order of features", by, get_args(By))
    base = changeable(dictionary, model) if model is None else model
    if not isinstance(base, LayeredModel):
        raise Unsupported("The layers of this model cannot be changed; give the model that the dictionary belongs to.")
    return FeatureModel(dictionary, base, n, by)


@final
@dataclass(frozen=True)
class FeatureImportance:
    """How much a feature matters over texts: means with 95 % intervals; where it is no unit of a text it counts 0."""

    feature: int
    mean: float
    low: float
    high: float
    mean_abs: float
    abs_low: float
    abs_high: float
    n_texts: int
    """The texts of which it is a unit."""


def importance(explanations: Sequence[Any]) -> list[FeatureImportance]:
    """How much each feature matters, from explanations of many texts with features as units, by mean |score|.

    Refused texts are left out, and explanations for different targets are refused.
    """
    if not isinstance(explanations, Sequence):
        raise BadInput(f"Give a list of explanations with features as units; {in_short(explanations)} was given.")
    items = [item for item in explanations if isinstance(item, Explanation)]
    if len({(item.target.name, item.target.scale, item.method) for item in items}) != 1:
        raise BadInput("Give explanations of one method for one target, such as target='positive'.")
    if len({item.model for item in items}) != 1:
        raise BadInput("The explanations are of different dictionaries, or of different units; give those of one.")
    if any(item.units != tuple(f"feature {number}" for number in item.document.ids.tolist()) for item in items):
        raise BadInput("Give explanations whose units are features, such as those of dictionary.as_units().")
    features = sorted({int(number) for item in items for number in item.document.ids})
    place = {number: row for row, number in enumerate(features)}
    scores, n_texts = np.zeros((len(features), len(items))), np.zeros(len(features), dtype=np.int64)
    for column, item in enumerate(items):
        own = np.array([place[number] for number in item.document.ids.tolist()])
        scores[own, column] = item.scores
        n_texts[own] += 1
    sizes = np.abs(scores)
    both = (scores.mean(axis=1), *mean_intervals(scores), sizes.mean(axis=1), *mean_intervals(sizes, (0.0, inf)))
    rows = zip(features, *(column.tolist() for column in (*both, n_texts)), strict=True)
    table = [FeatureImportance(*row) for row in rows]
    return sorted(table, key=lambda row: (-row.mean_abs, row.feature))
