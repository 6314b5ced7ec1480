"""A torch module around a Hugging Face encoder, such as an AutoModel with pooling and a head of one's own."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from inspect import signature
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import SequenceClassifierOutput

from heedful.errors import BadInput, Unsupported
from heedful.models.forward_patch import patched_forward
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
        self._tensors = tuple(name for name in _TENSORS if name in ("attention_mask", *tokenizer.model_input_names))
        self._accepted = _accepted_names(module, self._tensors)
        self.config: Any = self.encoder.config

    @property
    def encoder(self) -> PreTrainedModel:
        """The Hugging Face encoder of texts inside the module; refuses a module with none or several."""
        name, own = type(self.module).__name__, [m for m in self.module.modules() if isinstance(m, PreTrainedModel)]
        if not own or set(own) - set(own[0].modules()):
            kinds = ", ".join(type(part).__name__ for part in own) or "none"
            raise BadInput(
                f"With a tokenizer of transformers, {name} must contain one Hugging Face model; it contains {kinds}. "
                "Give a function that splits a text into tokens (id, start, end), or wrap a function of texts."
            )
        if own[0].config.is_encoder_decoder or own[0].main_input_name != "input_ids":
            raise Unsupported(f"{name} contains {type(own[0]).__name__}, which is not an encoder of texts.")
        return own[0]

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
        values: dict[str, Tensor] = dict(zip(_TENSORS, (input_ids, mask, types), strict=True))
        if self._accepted is None:
            output = self.module(BatchEncoding({name: values[name] for name in self._tensors}))
        else:
            output = self.module(**{name: values[name] for name in self._accepted})
        return SequenceClassifierOutput(logits=_logits(self.module, output, len(input_ids)))  # type: ignore[arg-type]

    def check_reading(self, run: Callable[[], Tensor], reads_all: bool) -> None:
        """Refuses a module that reads more from its encoder than the last states, or than their mean.

        States are changed in place behind the encoder, and the output must stay as it is: those of earlier layers by
        noise; if all positions are read, the last ones by noise whose mean over the positions is zero.
        """
        before = run()

        def change(edit: Callable[[Any], None]) -> float:
            # Some modules call `forward` itself, which passes hooks by.
            def edited(encoder: nn.Module) -> Callable[..., Any]:
                forward = encoder.forward

                @wraps(forward)
                def call(*args: Any, **kwargs: Any) -> Any:
                    output = forward(*args, **kwargs)
                    edit(output)
                    return output

                return call

            with patched_forward([self.encoder.base_model], edited):
                return float((run() - before).abs().max())

        def add_noise(states: Tensor, mean: float = 1.0) -> None:
            noise = torch.randn(states.shape, generator=torch.Generator().manual_seed(0)).to(states) * states.std()
            states.add_(noise - (1 - mean) * noise.mean(dim=1, keepdim=True))

        def edit_earlier(output: Any) -> None:
            for part in output.values() if isinstance(output, Mapping) else output:
                for states in part if isinstance(part, tuple) else ():
                    if states.data_ptr() != output[0].data_ptr():
                        add_noise(states)

        unknown = "so it is unknown whose attention counts."
        if change(edit_earlier):
            raise Unsupported(f"The output is also read from layers before the last, {unknown}")
        rounding = max(1e-3, 16 * torch.finfo(before.dtype).eps) * change(lambda output: add_noise(output[0]))
        # If no noise reaches the output, the module calls parts of its encoder, and nothing is known.
        if reads_all and not change(lambda output: add_noise(output[0], mean=0.0)) < rounding:
            raise Unsupported(f"The output is read neither from one token nor from the mean of all tokens, {unknown}")


def returned_by_graph(logits: Float[Tensor, "batch class"]) -> Returns:
    """What a module returns: probabilities if its last operation is a softmax or sigmoid, otherwise logits."""
    node = logits.grad_fn
    while node is not None and node.name().startswith(_VIEWS):
        node = node.next_functions[0][0]
    return "probabilities" if node is not None and node.name().startswith(("Softmax", "Sigmoid")) else "logits"


def _accepted_names(module: nn.Module, offered: tuple[str, ...]) -> tuple[str, ...] | None:
    """The tensors that `forward` takes by name; None if it takes the whole batch as its one argument."""
    call = signature(module.forward)
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in call.parameters.values())
    names = tuple(name for name in offered if takes_all or name in call.parameters)
    with suppress(TypeError):
        if "input_ids" in names:
            call.bind(**dict.fromkeys(names))
            return names
    with suppress(TypeError):
        call.bind(None)
        return None
    raise BadInput(
        f"forward of {type(module).__name__} takes {', '.join(call.parameters)}; it must take {', '.join(offered)} by "
        "these names, or the whole batch as its one argument."
    )


def _logits(module: nn.Module, output: Any, n_texts: int) -> Float[Tensor, "batch class"]:
    logits = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", output)
    if isinstance(logits, Tensor) and logits.dim() < 2 and logits.numel() == n_texts:
        return logits.reshape(n_texts, 1)
    if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != n_texts:
        what = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(output).__name__
        raise BadInput(
            f"{type(module).__name__} must return logits of shape (texts, classes), or an object with `logits`; for "
            f"{n_texts} texts it returned {what}."
        )
    return logits
