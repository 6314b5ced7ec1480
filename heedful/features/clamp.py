"""Features held at chosen activations while a model runs: clamping, ablation, and pushing along a direction."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.errors import BadInput, Unsupported, in_short
from heedful.features.activations import find_site
from heedful.features.dictionary import Dictionary
from heedful.models import Model, check_model
from heedful.models.attention_hook import ONE_THREAD
from heedful.models.fingerprint import hash_of, other_fingerprint
from heedful.models.language.activations import Site, replace_at
from heedful.models.language.read_tokens import watched_tokens
from heedful.models.layered import LayeredModel, root_of

Added = Callable[[Float[Tensor, "batch token d_e"]], Float[Tensor, "batch token d_e"]]
"""What is added to activations, given these."""
SiteChange = Callable[[Float[Tensor, "batch token d_e"], Bool[Tensor, "_ token"]], Float[Tensor, "batch token d_e"]]
"""What a pass goes on with, given its activations and which of them belong to tokens of a text."""
MOST = float(np.finfo(np.float32).max)
_TIMES = re.compile(r"(\d+(?:\.\d+)?)\s*[x×]")


@contextmanager
def clamped(
    dictionary: Dictionary, values: Mapping[int, int | float | str], model: Model | None = None
) -> Iterator[None]:
    """Inside this context every pass of the model goes on with features held at the given activations.

        x ← x + Σ_j (c_j − s_j(x)) d_j       at every token of a text

    What the dictionary does not reconstruct is kept. Special tokens and padding stay as they are: their activations are
    outliers on which no dictionary is trained. A value is an activation of at least 0 in the units of `encode`, or a
    text such as "5x", five times the feature's largest activation.

    The model's fingerprint is another one inside, so results from here are not taken for the model's own. A clamp
    inside another acts on what the outer one leaves. Other threads that use a model wait until the context ends.

    Reference: Templeton et al., *Scaling Monosemanticity*, 2024.
    """
    if not isinstance(values, Mapping) or not values:
        raise BadInput("Give activations by the numbers of features, such as {1234: 5.0}; at least one.")
    held = {dictionary.check_feature(feature): length_of(dictionary, feature, c) for feature, c in values.items()}
    chosen = changeable(dictionary, model)
    here = dictionary.to(str(device_of(chosen)))
    features, c = torch.tensor([*held]), torch.tensor([*held.values()], dtype=here.W_dec.dtype)
    places, c = features.to(here.W_dec.device), c.to(here.W_dec.device)

    def change(x: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch token d_e"]:
        return (c - here.encode(x)[..., places]) @ here.W_dec[places]

    with moved_by(chosen, dictionary, change, f"clamp {dictionary.fingerprint} {sorted(held.items())}"):
        yield


@contextmanager
def pushed(
    dictionary: Dictionary,
    direction: int | Float[np.ndarray, "d_e"],
    length: int | float | str,
    model: Model | None = None,
) -> Iterator[None]:
    """Inside this context every pass goes on with a vector added at every token of a text.

    Its direction is that of a feature, or an array; its length is a number, or of a feature "5x", as in `clamped`. A
    negative number, or "-5x", pushes the other way.
    """
    sign = 1.0
    if isinstance(length, str) and length.strip().startswith("-"):
        sign, length = -1.0, length.strip()[1:]
    elif isinstance(length, int | float) and length < 0:
        sign, length = -1.0, -length
    if isinstance(direction, np.ndarray):
        fits = direction.dtype.kind in "fiu" and direction.shape == (dictionary.d_e,)
        if not fits or not np.isfinite(direction).all() or not direction.any():
            raise BadInput(f"A direction is a vector of {dictionary.d_e} finite numbers that are not all 0.")
        if isinstance(length, str):
            raise BadInput(f"A direction has no largest activation; give a number in place of {length!r}.")
        step = torch.from_numpy(direction / np.linalg.norm(direction)).to(dictionary.W_dec)
    else:
        step = dictionary.W_dec[dictionary.check_feature(direction)]
    chosen, moved = changeable(dictionary, model), sign * step * length_of(dictionary, direction, length)
    here = moved.to(device_of(chosen))
    with moved_by(chosen, dictionary, here.expand_as, f"push {dictionary.card.place} {hash_of(moved)}"):
        yield


@contextmanager
def moved_by(model: LayeredModel, dictionary: Dictionary, added: Added, about: str) -> Iterator[None]:
    """Inside this context the model is another one: something is added to the activations of every token of a text."""

    def change(x: Tensor, is_text: Tensor) -> Tensor:
        return x + torch.where(is_text[..., None], added(x), 0.0).to(x)

    with site_changed(model, dictionary, change), other_fingerprint(model, about):
        yield


@contextmanager
def site_changed(model: LayeredModel, dictionary: Dictionary, change: SiteChange) -> Iterator[None]:
    """Inside this context every pass goes on with other activations at the dictionary's site."""
    site = find_site(model, dictionary.card.part, dictionary.card.layer)
    with ONE_THREAD, watched_tokens(model) as places:

        def replacement(_: Site, x: Tensor) -> Tensor:
            if x.shape[-1] != dictionary.d_e:
                raise BadInput(
                    f"The dictionary reads rows of {dictionary.d_e} dimensions; the model's have {x.shape[-1]}."
                )
            # A threshold in half precision would switch features on and off.
            with torch.autocast(x.device.type, enabled=False):
                return change(x, places(x))

        hook = replace_at(site, replacement)
        try:
            yield
        finally:
            hook.remove()


def length_of(dictionary: Dictionary, feature: object, value: object) -> float:
    """An activation as a number: itself, or "5x", five times the feature's largest."""
    times = _TIMES.fullmatch(value.strip()) if isinstance(value, str) else None
    if times:
        number = dictionary.check_feature(feature)
        largest = float(dictionary.largest[number])
        if largest <= 0:
            raise BadInput(f"Feature {number} was never active, so it has no largest activation; give a number.")
        return float(times[1]) * largest
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value <= MOST:
        raise BadInput(
            'An activation is a number of at least 0, or a multiple of the largest such as "5x"; '
            f"{in_short(value)} was given."
        )
    return float(value)


def device_of(model: LayeredModel) -> torch.device:
    """The device of a model's weights."""
    return next(model.network.parameters()).device


def changeable(dictionary: Dictionary, model: Model | None) -> LayeredModel:
    """The model whose network is changed; one that the dictionary does not belong to is refused."""
    chosen = dictionary.model if model is None else model
    if chosen is None:
        raise BadInput("The dictionary is bound to no model; give one with model=, or load it with model=.")
    check_model(chosen)
    root = root_of(chosen)
    if not isinstance(root, LayeredModel):
        raise Unsupported("The layers of this model cannot be changed; give the model that the dictionary belongs to.")
    dictionary.bound(root)
    if dictionary.card.layer < 0:
        raise BadInput("The dictionary belongs to no known layer of a model; train it with heedful.features.train.")
    return root
