"""A torch module around a Hugging Face encoder, such as an AutoModel with pooling and a head of one's own."""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, signature
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import SequenceClassifierOutput

from heedful.errors import BadInput, Unsupported, describe_error
from heedful.models.attention_hook import still
from heedful.target import Returns

_TENSORS = ("input_ids", "attention_mask", "token_type_ids")
_VIEWS = ("Squeeze", "Unsqueeze", "View", "Reshape", "Select", "Slice", "Alias")


@final
class CustomModule(nn.Module):
    """A module that contains a Hugging Face encoder, with the interface of transformers' own classifiers."""

    main_input_name = "input_ids"

    def __init__(self, module: nn.Module, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__()
        self.module = module
        self._check_encoder()
        self._tensors = tuple(name for name in _TENSORS if name in ("attention_mask", *tokenizer.model_input_names))
        self._accepted = _accepted_names(module, self._tensors)
        self._takes_batch = self._accepted is None
        probe = tokenizer("a b", return_tensors="pt")["input_ids"].to(self.device)
        with torch.no_grad(), still(self):
            try:
                self(probe)
            # What somebody's module raises is not foreseeable.
            except Exception as error:
                if self._accepted is not None or isinstance(error, BadInput):
                    raise _failed(module, error) from error
                self._takes_batch = False
                try:
                    self(probe)
                except Exception as second:
                    raise _failed(module, second) from error

    @property
    def encoder(self) -> PreTrainedModel:
        """The Hugging Face model inside the module."""
        return _encoders(self.module)[0]

    @property
    def config(self) -> Any:
        """The configuration of the encoder."""
        return self.encoder.config

    @property
    def device(self) -> torch.device:
        """The device of the encoder."""
        return self.encoder.device

    def get_input_embeddings(self) -> nn.Module:
        """The table of word vectors."""
        return self.encoder.get_input_embeddings()

    def forward(
        self,
        input_ids: Int[Tensor, "batch token"],
        attention_mask: Int[Tensor, "batch token"] | None = None,
        token_type_ids: Int[Tensor, "batch token"] | None = None,
    ) -> SequenceClassifierOutput:
        """The module's outputs for the tensors that its tokenizer gives, as logits of shape (batch, class)."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        values = dict(zip(_TENSORS, (input_ids, mask, types), strict=True))
        batch = {name: values[name] for name in self._tensors}
        if self._accepted is not None:
            output = self.module(**{name: batch[name] for name in self._accepted})
        else:
            output = self.module(BatchEncoding(batch) if self._takes_batch else input_ids)
        logits: Any = _logits(self.module, output, len(input_ids))
        return SequenceClassifierOutput(logits=logits)

    def check_reading(self, run: Callable[[], Tensor], reading: str) -> None:
        """Refuses a module that reads more from its encoder than the last states at `reading`, or than their mean.

        States are changed in place behind the encoder, and the output must stay as it is: states of earlier layers by
        noise; if all positions are read, the last states by noise whose mean over the positions is zero.
        """
        before = run()
        seeded = torch.Generator().manual_seed(0)

        def change(edit: Callable[[Any], None]) -> float:
            handle = self.encoder.base_model.register_forward_hook(lambda _module, _inputs, output: edit(output))
            try:
                return float((run() - before).abs().max())
            finally:
                handle.remove()

        def noise(states: Tensor, centred: bool) -> Tensor:
            values = torch.randn(states.shape, generator=seeded).to(states) * states.std()
            return values - values.mean(dim=1, keepdim=True) if centred else values

        def edit_earlier(output: Any) -> None:
            for states in (getattr(output, "hidden_states", None) or ())[:-1]:
                states.add_(noise(states, False))

        def edit_last(centred: bool, output: Any) -> None:
            output[0].add_(noise(output[0], centred))

        if change(edit_earlier):
            raise Unsupported("The module reads earlier layers than the last, so the attention that counts is unknown.")
        if reading == "all":
            eps = torch.finfo(before.dtype).eps
            centred, other = change(partial(edit_last, True)), change(partial(edit_last, False))
            if centred > max(1e-3, 16 * eps) * other:
                raise Unsupported(
                    "The output is read neither from one token nor from the mean of all tokens, so the attention that "
                    "counts is unknown."
                )

    def _check_encoder(self) -> None:
        inside = _encoders(self.module)
        name = type(self.module).__name__
        if len(inside) != 1:
            kinds = ", ".join(type(encoder).__name__ for encoder in inside) or "none"
            raise BadInput(
                f"With a tokenizer of transformers, {name} must contain one Hugging Face model; it contains {kinds}. "
                "Otherwise give a function that splits a text into tokens (id, start, end), or wrap a function of texts."
            )
        if inside[0].config.is_encoder_decoder or inside[0].main_input_name != "input_ids":
            raise Unsupported(
                f"{name} contains {type(inside[0]).__name__}, which is not an encoder of texts; wrap a function of texts."
            )


def contains_pretrained(module: nn.Module) -> bool:
    """Whether a Hugging Face model is inside the module."""
    return bool(_encoders(module))


def returned_by_graph(logits: Float[Tensor, "batch class"]) -> Returns:
    """ "probabilities" if a softmax or a sigmoid is the last operation of the module, "logits" otherwise."""
    node = logits.grad_fn
    while node is not None and node.name().startswith(_VIEWS):
        node = node.next_functions[0][0]
    applied = "" if node is None else node.name()
    return "probabilities" if applied.startswith(("Softmax", "Sigmoid")) else "logits"


def _encoders(module: nn.Module) -> list[PreTrainedModel]:
    """The Hugging Face models inside the module that are not part of another."""
    own = [part for part in module.modules() if isinstance(part, PreTrainedModel)]
    parts = {id(part) for outer in own for part in outer.modules() if part is not outer}
    return [part for part in own if id(part) not in parts]


def _accepted_names(module: nn.Module, offered: tuple[str, ...]) -> tuple[str, ...] | None:
    """The tensors that `forward` takes by name; None if it has a single argument, for the whole batch or the ids."""
    parameters = signature(module.forward).parameters.values()
    named = [p for p in parameters if p.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)]
    required = [p.name for p in named if p.default is Parameter.empty]
    others = [name for name in required if name not in offered]
    takes_all = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    accepted = tuple(name for name in offered if takes_all or name in [p.name for p in named])
    if others and len(required) == 1:
        return None
    if others or "input_ids" not in accepted:
        raise BadInput(
            f"forward of {type(module).__name__} takes {', '.join(p.name for p in parameters)}; it must take "
            f"{', '.join(offered)} by these names, or the whole batch as its one argument."
        )
    return accepted


def _logits(module: nn.Module, output: Any, n_texts: int) -> Float[Tensor, "batch class"]:
    logits = output.get("logits") if isinstance(output, Mapping) else output
    logits = logits if isinstance(logits, Tensor) else getattr(output, "logits", None)
    if isinstance(logits, Tensor) and logits.dim() < 2 and logits.numel() == n_texts:
        return logits.reshape(n_texts, 1)
    if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != n_texts:
        what = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(output).__name__
        raise BadInput(
            f"{type(module).__name__} must return logits of shape (texts, classes), or an object with `logits`; for "
            f"{n_texts} texts it returned {what}."
        )
    return logits


def _failed(module: nn.Module, error: Exception) -> BadInput:
    name = type(module).__name__
    return error if isinstance(error, BadInput) else BadInput(f"{name} failed on a probe with {describe_error(error)}.")
