"""Whether the output of a layer's attention or MLP is what the layer adds to the residual stream."""

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn

from heedful.document import Document
from heedful.errors import Unsupported
from heedful.features.activations import find_site
from heedful.models.attention_hook import Attended, heard, still
from heedful.models.language.activations import Site, replace_at
from heedful.models.layered import LayeredModel

_ADDED: WeakSet[nn.Module] = WeakSet()
"""Modules whose output is what their layer adds."""
_CLOSE = 1e-3


def check_added(model: LayeredModel, document: Document, site: Site) -> None:
    """Refuses a part that its layer norms or scales before it adds it, as Gemma 2 and Granite do.

    In one pass over the document some vector in the layer, what leaves it or enters a module, must be another one plus
    what the part gives, and where attention and MLP work side by side plus what the other gives.
    """
    if site.part == "residual" or site.module in _ADDED:
        return
    own, others, vectors = _vectors_of_layer(model, document, site)
    rests = [x - own - other for x in vectors for other in (torch.zeros(()).to(own), *others)]
    # A sum in half precision is rounded to three digits.
    rounding = 4 * torch.finfo(own.dtype).eps
    if not any((rest - x).norm() <= _CLOSE * own.norm() + rounding * x.norm() for rest in rests for x in vectors):
        raise Unsupported(
            f"{type(model.network).__name__} changes the output of its {site.part} before a layer adds it, so the part "
            "cannot be read; use the part 'residual'."
        )
    _ADDED.add(site.module)


@torch.no_grad()
def _vectors_of_layer(model: LayeredModel, document: Document, site: Site) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """What a part gives, what the other part gives, and what enters the modules of the layer or leaves it."""
    layer, sites = find_site(model, "residual", site.layer).module, [site]
    with suppress(Unsupported):
        sites.append(find_site(model, "mlp" if site.part == "attention" else "attention", site.layer))
    given: dict[str, Tensor] = {}
    vectors: list[Tensor] = []

    def take(tensors: Iterable[Any]) -> None:
        # Some layers add in place.
        vectors.extend(x.detach().clone() for x in tensors if isinstance(x, Tensor))

    def enter(_: nn.Module, args: tuple[Any, ...], others: dict[str, Any]) -> None:
        take((*args, *others.values()))

    def leave(_: nn.Module, _args: tuple[Any, ...], output: Any) -> None:
        take(output if isinstance(output, tuple) else (output,))

    def keep(own: Site, x: Tensor) -> Tensor:
        given[own.part] = x.detach().clone()
        return x

    with still(model.network), heard(model.network, Attended.output), ExitStack() as hooks:
        for own in sites:
            hooks.callback(replace_at(own, keep).remove)
        for module in layer.modules():
            hooks.callback(module.register_forward_pre_hook(enter, with_kwargs=True).remove)
        hooks.callback(layer.register_forward_hook(leave).remove)
        model.forward(model.embed([document]), [document])
    own = given.pop(site.part)
    return own, [*given.values()], [x for x in vectors if x.shape == own.shape]
