"""Where a model stores what it says next: activation patching between a clean and a corrupted prompt."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.document import SPECIAL, Document
from heedful.document.note import Note
from heedful.errors import BadInput, Unsupported, unknown_name
from heedful.generation.location import Location
from heedful.models import Model, check_model
from heedful.models.attention_hook import still
from heedful.models.budget import Budget
from heedful.models.language.activations import (
    Activations,
    Site,
    find_sites,
    record_activations,
    replaced_activations,
)
from heedful.models.layered import LayeredModel
from heedful.models.recording import OneTower, rounding
from heedful.progress import Progress, progress_of, show_progress
from heedful.target import Scale, Target, check_scale, resolve_target

_UNITS = ("token", "word")


def locate(
    model: Model,
    clean: Any,
    corrupted: Any,
    target: int | str | Target | None = None,
    against: int | str | None = None,
    *,
    part: str = "residual",
    measure: Scale = "logit",
    unit: str = "token",
    memory: str | int | float | None = None,
    progress: Progress | bool | None = show_progress,
) -> Location:
    """Where in the network the corrupted prompt differs from the clean one: activation patching, layer by position.

    The corrupted prompt is run once for every layer and position, with the activation there replaced by that of the
    clean prompt. The prompts have the same number of tokens and differ in the words that carry the fact. The target
    is the next token that the model prefers after the clean prompt. With the measure "logit" it is compared with
    `against`, by default the token preferred after the corrupted prompt: the difference of their logits.

    Reference: Meng et al., NeurIPS 2022, arXiv:2202.05262 (causal tracing); Wang et al., ICLR 2023, arXiv:2211.00593
    (logit difference); Zhang & Nanda, ICLR 2024, arXiv:2309.16042 (other tokens rather than noise, logit difference).
    Differs from Meng et al.: the corruption is another prompt instead of noise, one layer is patched instead of ten,
    and the residual stream is patched where it enters a layer, so that layer 0 is the embeddings.
    """
    layered, most = _check_request(model, measure, unit), Budget.of(memory, None, lambda *_: None).memory
    both = layered.encode(clean), layered.encode(corrupted)
    _check_prompts(*both)
    sites = find_sites(layered, part)
    runs = [record_activations(layered, [document], sites) for document in both]
    rows = np.stack([run.logits[0].double().cpu().numpy() for run in runs])
    resolved = _resolve(layered, both[0], rows, target, against, measure)
    ends = _ends(resolved, rows, rounding(runs[0].logits.dtype))
    with progress_of(progress, "patches") as watch:
        return _map(_Patch(layered, both[1], sites, *runs), both, unit, resolved, ends, most, watch)


def _check_request(model: Model, measure: Scale, unit: str) -> LayeredModel:
    """The model itself; a measure or unit that there is not, and a model without layers, are refused."""
    check_model(model)
    check_scale(measure, model.returns)
    if unit not in _UNITS:
        raise unknown_name("unit", unit, _UNITS)
    if not isinstance(model, LayeredModel):
        raise Unsupported("locate needs a model whose layers can be replaced, such as a Hugging Face model.")
    return model


def _map(
    patch: "_Patch",
    both: tuple[Document, Document],
    unit: str,
    target: Target,
    ends: tuple[float, float],
    memory: int | None,
    watch: Progress,
) -> Location:
    """The result of all patches between the clean and the corrupted prompt."""
    groups = _groups(both[0], unit)
    values, n_patches = patch.values(groups, target, ends[1], patch.model.masks_at_once(both[1], memory), watch)
    names = [tuple(_name(document, member) for member in groups) for document in both]
    notes = [note for document in both for note in document.notes]
    if target.against is None and target.scale == "logit" and patch.clean.logits.shape[-1] > 1:
        notes.append(Note(f"{target} alone is the target; give `against` to compare it with another token."))
    return Location(
        clean=both[0].text,
        corrupted=both[1].text,
        target=target,
        part=patch.sites[0].part,
        tokens=names[0],
        corrupted_tokens=names[1],
        values=values,
        clean_value=ends[0],
        corrupted_value=ends[1],
        model=patch.model.fingerprint,
        n_forwards=2 + n_patches,
        notes=tuple(dict.fromkeys(notes)),
    )


@final
@dataclass(frozen=True, eq=False)
class _Patch:
    """The corrupted prompt with activations of the clean one."""

    model: LayeredModel
    document: Document
    sites: tuple[Site, ...]
    clean: Activations
    corrupted: Activations

    @torch.no_grad()
    def values(
        self,
        groups: Bool[np.ndarray, "position token"],
        target: Target,
        unpatched: float,
        at_once: int,
        watch: Progress,
    ) -> tuple[Float[np.ndarray, "layer position"], int]:
        """The target after each patch, and the number of patches; patches of all layers share a pass."""
        shape = (1 + max(site.layer for site in self.sites), groups.shape[1])
        exists, differs = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        for site in self.sites:
            own = self._tokens(site)
            changed = (self.clean.at[site] != self.corrupted.at[site]).any(dim=-1)[0].cpu().numpy()
            exists[site.layer, own], differs[site.layer, own] = True, changed[: len(own)]
        values = np.where(exists @ groups.T, unpatched, np.nan)
        # Where both prompts have the same activation, as before their first different token, a patch changes nothing.
        cells = np.argwhere(differs @ groups.T)
        e = self.model.embed([self.document])
        for start in range(0, len(cells), at_once):
            layers, positions = cells[start : start + at_once].T
            replacement = self._replacement(layers, groups[positions])
            with still(self.model.network), replaced_activations(self.model, self.sites, replacement):
                logits = self.model.forward(e.expand(len(layers), -1, -1), [self.document] * len(layers))
            values[layers, positions] = _finite(target.of(logits.double().cpu().numpy()))
            watch(min(len(cells), start + at_once), len(cells))
        return values, len(cells)

    def _replacement(
        self, layers: Int[np.ndarray, "row"], patched: Bool[np.ndarray, "row token"]
    ) -> Callable[[Site, Tensor], Tensor]:
        def replace(site: Site, x: Tensor) -> Tensor:
            own = self._tokens(site)
            mine = torch.zeros(x.shape[:2], dtype=torch.bool)
            mine[:, : len(own)] = torch.from_numpy(patched[:, own] & (layers == site.layer)[:, None])
            return torch.where(mine[..., None].to(x.device), self.clean.at[site], x)

        return replace

    def _tokens(self, site: Site) -> Int[np.ndarray, "_"]:
        """The document's tokens that run through the site's tower."""
        if isinstance(self.model, OneTower):
            return np.arange(len(self.document.ids))
        return np.flatnonzero(self.document.segments == (0 if site.source else 1))


def _check_prompts(clean: Document, corrupted: Document) -> None:
    """Refuses prompts of different lengths, equal prompts and images."""
    n = len(clean.ids), len(corrupted.ids)
    shorter = min(n)
    if not shorter or clean.picture is not None:
        raise BadInput("locate compares two texts; give two prompts with the same number of tokens.")
    different = np.flatnonzero(clean.ids[:shorter] != corrupted.ids[:shorter])
    if n[0] != n[1]:
        place = int(different[0]) if len(different) else shorter
        first = [repr(d.pieces[place]) if place < len(d.ids) else "the end" for d in (clean, corrupted)]
        raise BadInput(
            f"Both prompts must have the same number of tokens; the clean one has {n[0]} and the corrupted one {n[1]}. "
            f"They differ first at token {place + 1}: {first[0]} and {first[1]}. Choose another word there."
        )
    if not len(different):
        raise BadInput(f"Both prompts are the same {n[0]} tokens; change the words that carry the fact.")
    if clean.segments is not None and (clean.segments != corrupted.segments).any():
        raise BadInput("The two texts of the pairs must have the same numbers of tokens in both prompts.")


def _resolve(
    model: LayeredModel,
    document: Document,
    rows: Float[np.ndarray, "prompt class"],
    target: int | str | Target | None,
    against: int | str | None,
    measure: Scale,
) -> Target:
    """The target; if it is a logit, by default its difference from what is preferred after the corrupted prompt."""
    names = model.target_names(document)
    resolved = resolve_target(target, against, names, rows[0], measure, model.returns)
    other = int(np.argmax(rows[1]))
    if isinstance(target, Target) or against is not None or measure != "logit" or other == resolved.index:
        return resolved
    return resolve_target(names.shown(resolved.index), names.shown(other), names, rows[0], measure, model.returns)


def _ends(target: Target, rows: Float[np.ndarray, "prompt class"], relative_error: float) -> tuple[float, float]:
    """The target after the clean and after the corrupted prompt; refused if they differ by rounding alone."""
    clean, corrupted = _finite(target.of(_finite(rows))).tolist()
    error = relative_error * np.abs(rows).max()
    if abs(clean - corrupted) <= (error * max(clean, corrupted) if target.scale == "probability" else error):
        raise BadInput(
            f"Both prompts give {target} the same value, {clean:.4g}, so there is nothing to restore; "
            "choose another target or other prompts."
        )
    return clean, corrupted


def _finite(numbers: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """The numbers themselves; NaN and infinite ones are refused."""
    if not np.isfinite(numbers).all():
        raise BadInput("The model's output is not a finite number; check its weights, or load it in full precision.")
    return numbers


def _groups(document: Document, unit: str) -> Bool[np.ndarray, "position token"]:
    """The tokens that are patched together; a special token is alone."""
    each = np.arange(len(document.ids))
    numbers = each if unit == "token" else np.where(document.words == SPECIAL, -1 - each, document.words)
    return np.array(list(dict.fromkeys(numbers.tolist())))[:, None] == numbers


def _name(document: Document, member: Bool[np.ndarray, "token"]) -> str:
    """Some tokens as the text spells them."""
    places = np.flatnonzero(member).tolist()
    text = document.text[document.spans[places[0]][0] : document.spans[places[-1]][1]].strip()
    return text or "".join(document.pieces[place] for place in places)
