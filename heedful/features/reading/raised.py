"""What a feature's direction does to the outputs: the output tokens that it raises, or the logits of classes."""

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.functional import jacobian

from heedful.document import Document
from heedful.features.activations import find_site, is_read
from heedful.features.dictionary import Dictionary
from heedful.models.attention_hook import Attended, heard, still
from heedful.models.language import LanguageModel
from heedful.models.language.activations import Site, find_sites, replaced_activations
from heedful.models.layered import LayeredModel
from heedful.models.recording import OneTower
from heedful.statistics.intervals import mean_intervals

_N_TEXTS = 32
_N_ROWS = 512
_N_CLASSES = 100
_CLOSE = 1e-3


@final
class Output(NamedTuple):
    """An output and how much an activation of 1 changes its logit; NaN where no interval is known."""

    name: str
    effect: float
    low: float = float("nan")
    high: float = float("nan")


@final
class Readout(NamedTuple):
    """How directions act on the outputs: the effect of each on every output, and how that was computed."""

    about: str
    names: Sequence[str]
    of: Any
    """A function of directions that gives effects, and their intervals or None; None if nothing is known."""

    def outputs(self, directions: Float[Tensor, "feature d_e"], n: int) -> list[tuple[list[Output], list[Output]]]:
        """For each direction the n outputs that it raises most, and the n that it lowers most."""
        if self.of is None:
            return [([], []) for _ in directions]
        effects, bounds = self.of(directions)
        n = min(n, effects.shape[1])
        least, most = effects.topk(n, largest=False).indices.tolist(), effects.topk(n).indices.tolist()
        return [
            (self._row(row, up, effects, bounds, 1), self._row(row, down, effects, bounds, -1))
            for row, (up, down) in enumerate(zip(most, least, strict=True))
        ]

    def _row(self, row: int, places: list[int], effects: Tensor, bounds: Any, sign: int) -> list[Output]:
        chosen = [place for place in places if sign * float(effects[row, place]) > 0]
        sides = [() if bounds is None else tuple(float(side[row, place]) for side in bounds) for place in chosen]
        return [
            Output(str(self.names[place]), float(effects[row, place]), *some)
            for place, some in zip(chosen, sides, strict=True)
        ]


def readout_of(dictionary: Dictionary, model: LayeredModel, documents: Sequence[Document]) -> Readout:
    """The read-out of a model at the dictionary's site, measured on the first of some documents."""
    site, some = find_site(model, dictionary.card.part, dictionary.card.layer), documents[:_N_TEXTS]
    with still(model.network):
        if isinstance(model, LanguageModel):
            return _lens(model, site, some)
        return _classes(model, site, some)


def _nothing(reason: str) -> Readout:
    return Readout(f"The outputs that a feature raises are not known: {reason}.", (), None)


def _lens(model: LanguageModel, site: Site, documents: Sequence[Document]) -> Readout:
    """W_U J d, with J the mean Jacobian of the last norm over the tokens of the documents.

    The norm is the module outside of the layers whose output, from that of the last layer, enters the head: found by
    running every norm, not by its name.

    Reference: nostalgebraist, *Interpreting GPT: the logit lens*, 2020.
    Differs from the source: the norm is differentiated, so that effects are in logits per activation of 1.
    """
    if site.source or not isinstance(model, OneTower):
        return _nothing("the layer belongs to an encoder, from which no output token is read")
    x, states, others, scale = _last_states(model, documents, site)
    norms = [module for module in model.network.modules() if "norm" in type(module).__name__.lower()]
    with torch.no_grad():
        fitting = [norm for norm in (*norms, nn.Identity()) if _gives(norm, x, states)]
    if not fitting:
        return _nothing("what enters the head is not a norm of the last layer's output")
    shift = jacobian(lambda step: fitting[0](x + step).mean(dim=0), torch.zeros_like(x[0]))
    assert isinstance(shift, Tensor)

    @torch.no_grad()
    def effects(directions: Float[Tensor, "feature d_e"]) -> tuple[Float[Tensor, "feature output"], None]:
        moved = directions.to(shift) @ shift.T
        return scale * (model.head(moved, *others) - model.head(torch.zeros_like(moved[:1]), *others)).float(), None

    about = (
        "Logit lens: the change of an output token's logit for an activation of 1, to first order, through the last "
        f"norm (its mean derivative at {len(x):,} tokens) and the head. What later layers make of the feature is left "
        "out, so early layers are approximated worst; a soft cap behind the head is left out too."
    )
    return Readout(about, model.classes, effects)


def _gives(norm: nn.Module, x: Tensor, states: Tensor) -> bool:
    try:
        given = norm(x)
    except (RuntimeError, TypeError, ValueError):
        return False
    return (
        isinstance(given, Tensor)
        and given.shape == states.shape
        and bool((given - states).norm() <= _CLOSE * states.norm())
    )


@torch.no_grad()
def _last_states(
    model: LanguageModel, documents: Sequence[Document], site: Site
) -> tuple[Float[Tensor, "row d_e"], Float[Tensor, "row d_e"], tuple[Any, ...], float]:
    """What leaves the last layer and what enters the head at the tokens of texts, and the other inputs of the head.

    Last, the factor between what the head gives and the logits, as in Granite and Cohere; 1 if it is no factor.
    """
    last, outputs, inputs = find_sites(model, "residual")[-1].module, [], []

    def leave(_: nn.Module, _args: tuple[Any, ...], output: Any) -> None:
        outputs.append(output[0] if isinstance(output, tuple) else output)

    def enter(_: nn.Module, args: tuple[Any, ...]) -> None:
        inputs.append(args)

    hooks = last.register_forward_hook(leave), model.head.register_forward_pre_hook(enter)
    x, states, n_rows, logits = [], [], 0, torch.empty(0)
    try:
        with heard(model.network, Attended.output):
            for document in documents:
                outputs.clear()
                inputs.clear()
                logits = model.token_logits(model.embed([document]), [document], None, len(document.ids))[0]
                real = torch.from_numpy(is_read(model, document, site))
                x.append(outputs[0][0, real])
                states.append(inputs[0][0][0, real])
                n_rows += len(x[-1])
                if n_rows >= _N_ROWS:
                    break
    finally:
        for hook in hooks:
            hook.remove()
    given = model.head(*inputs[0])[0].double()
    factor = float((given * logits.double()).sum() / given.square().sum())
    is_factor = bool((factor * given - logits).norm() <= _CLOSE * logits.double().norm())
    return torch.cat(x), torch.cat(states), inputs[0][1:], factor if is_factor else 1.0


def _classes(model: LayeredModel, site: Site, documents: Sequence[Document]) -> Readout:
    """Σ_t ∂f_c/∂x_t · d, the mean over the documents with its interval over them, for every class c.

    Of classes that exclude each other, less the mean over the classes: only differences of their logits matter.
    """
    n = len(model.classes)
    if n > _N_CLASSES:
        return _nothing(f"the model has {n:,} outputs, and a backward pass is needed for each; at most {_N_CLASSES}")
    slopes = torch.stack([_slopes(model, site, document) for document in documents])
    centred = model.returns == "logits" and n > 1
    if centred:
        slopes = slopes - slopes.mean(dim=1, keepdim=True)

    def effects(directions: Float[Tensor, "feature d_e"]) -> Any:
        values = torch.einsum("tcd,fd->fct", slopes, directions.to(slopes))
        sides = mean_intervals(values.flatten(0, 1).double().cpu().numpy())
        return values.mean(dim=-1), tuple(side.reshape(values.shape[:2]) for side in sides)

    about = (
        "The change of a class's output for an activation of 1 more at every token, to first order, through all later "
        f"layers: the mean over {len(documents)} texts, with its 95 % confidence interval."
        + (" It is relative to the mean of all classes, since only differences of logits matter." if centred else "")
    )
    return Readout(about, model.classes, effects)


def _slopes(model: LayeredModel, site: Site, document: Document) -> Float[Tensor, "class d_e"]:
    """The gradient of every class with respect to one vector that is added at every token of the text."""
    real = torch.from_numpy(is_read(model, document, site))
    step: list[Tensor] = []

    def shift(_: Site, x: Tensor) -> Tensor:
        step[:] = [torch.zeros(x.shape[-1], dtype=x.dtype, device=x.device, requires_grad=True)]
        some = real[: x.shape[1]].to(x)
        return x + torch.nn.functional.pad(some[:, None] * step[0], (0, 0, 0, x.shape[1] - len(some)))

    with torch.enable_grad(), replaced_activations(model, [site], shift):
        logits = model.forward(model.embed([document]), [document])[0]
        rows = [torch.autograd.grad(logit, step[0], retain_graph=True)[0] for logit in logits]
    return torch.stack(rows).float()
