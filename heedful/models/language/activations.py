"""What the layers of any layered model compute at each token: recorded, or replaced while the network runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal, final, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.document import Document
from heedful.errors import Unsupported, unknown_name
from heedful.models.attention_hook import Attended, heard, still
from heedful.models.recording import OneTower, Recordable

Part = Literal["residual", "attention", "mlp"]
"""The residual stream that enters a layer (of layer 0 the embeddings), or what attention or the MLP adds to it."""
_NAMES = {
    "attention": ("attn", "self_attn", "self_attention", "SelfAttention", "attention", "o_proj", "W_o"),
    "mlp": ("mlp", "feed_forward", "ffn", "fc2", "DenseReluDense", "down", "W_2"),
}
"""What the modules that compute a part are called; the last two of each are those of our own models."""
_LAST_MAPS = {
    "attention": ("attention.output.dense", "self_attention.dense"),
    "mlp": ("output.dense", "mlp.dense_4h_to_h"),
}
"""Where the module of a part adds the residual stream itself, as in BERT and Bloom: the linear map before the sum."""


@final
@dataclass(frozen=True, eq=False)
class Site:
    """A part of one layer; `source` is True in the encoder of an encoder-decoder."""

    part: Part
    layer: int
    module: nn.Module
    source: bool = False


Replacement = Callable[[Site, Float[Tensor, "batch token d_e"]], Float[Tensor, "batch token d_e"]]
"""Takes a site and its activations; returns those that the network goes on with."""


@final
@dataclass(frozen=True, eq=False)
class Activations:
    """One forward pass: the activations at some sites, and the logits."""

    at: Mapping[Site, Float[Tensor, "batch token d_e"]]
    logits: Float[Tensor, "batch class"]


def find_sites(model: Recordable, part: str) -> tuple[Site, ...]:
    """The sites of a part in every layer, in order; of an encoder-decoder the encoder's, then the decoder's."""
    if part not in get_args(Part):
        raise unknown_name("part", part, get_args(Part))
    stacks = _stacks(model.network)
    if isinstance(model, OneTower):
        stacks = [max(stacks, key=len)] if stacks else []
    if len(stacks) != (1 if isinstance(model, OneTower) else 2):
        raise Unsupported(f"The list of layers of {type(model.network).__name__} could not be found.")
    return tuple(
        Site(part, number, layer if part == "residual" else _module_of(part, layer), stack is not stacks[-1])  # type: ignore[arg-type]
        for stack in stacks
        for number, layer in enumerate(stack)
    )


@contextmanager
def replaced_activations(model: Recordable, sites: Sequence[Site], replacement: Replacement) -> Iterator[None]:
    """Inside this context every pass goes on with what `replacement` returns for each site; restored afterwards."""
    with heard(model.network, Attended.output), ExitStack() as hooks:
        # A model that is heard reads every row in full: it caches no prefix that its texts have in common.
        for site in sites:
            hooks.callback(replace_at(site, replacement).remove)
        yield


@torch.no_grad()
def record_activations(model: Recordable, documents: Sequence[Document], sites: Sequence[Site]) -> Activations:
    """Runs the model once and stores the activations at the sites; documents of one length."""
    at: dict[Site, Tensor] = {}
    n_heard = 0

    def keep(site: Site, x: Tensor) -> Tensor:
        nonlocal n_heard
        n_heard += 1
        at[site] = x.clone()
        return x

    with still(model.network), replaced_activations(model, sites, keep):
        logits = model.forward(model.embed(documents), documents)
    if not n_heard == len(at) == len(sites) or any(x.dim() != 3 for x in at.values()):
        kind = type(model.network).__name__
        raise Unsupported(f"The layers of {kind} do not run once each on vectors of every token; nothing was changed.")
    return Activations(at, logits)


def _stacks(network: nn.Module) -> list[nn.ModuleList]:
    """The lists of modules that are inside of no other list."""
    stacks: list[nn.ModuleList] = []
    inner: set[nn.Module] = set()
    for module in network.modules():
        if isinstance(module, nn.ModuleList) and module not in inner:
            stacks.append(module)
            inner.update(module.modules())
    return stacks


def _module_of(part: str, layer: nn.Module) -> nn.Module:
    """The module in a layer whose output is the part, without the residual stream."""
    by_name: dict[str, nn.Module] = {}
    for name, module in layer.named_modules():
        by_name.setdefault(name.rpartition(".")[2], module)
    for module in (by_name[name] for name in _NAMES[part] if name in by_name):
        # Bloom's modules take the residual stream and add it; BERT's attention contains a module that does.
        adds = "residual" in signature(module.forward).parameters or "output" in dict(module.named_children())
        if not adds:
            return module
    for path in _LAST_MAPS[part]:
        with suppress(AttributeError):
            return layer.get_submodule(path)
    raise Unsupported(
        f"No module of {type(layer).__name__} is known to return the {part} output alone; use the part 'residual'."
    )


def replace_at(site: Site, replacement: Replacement) -> Any:
    """Until the returned hook is removed, passes go on with what `replacement` returns for the site."""

    def enter(_: nn.Module, args: tuple[Any, ...], others: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if args:
            return (replacement(site, args[0]), *args[1:]), others
        return args, others | {"hidden_states": replacement(site, others["hidden_states"])}

    def leave(_: nn.Module, _args: tuple[Any, ...], output: Any) -> Any:
        if isinstance(output, tuple):
            return (replacement(site, output[0]), *output[1:])
        return replacement(site, output)

    if site.part == "residual":
        return site.module.register_forward_pre_hook(enter, with_kwargs=True)
    return site.module.register_forward_hook(leave)
