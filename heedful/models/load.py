"""How a model is loaded from a file, a folder or the hub, or wrapped when it is already in memory."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from heedful.errors import BadCheckpoint, BadInput, MissingPackage
from heedful.models import Model
from heedful.models.foreign import function_of, is_estimator, is_pipeline, parts_of


def load(name: str, device: str = "cpu", precision: str = "float32") -> Model:
    """The bundled model ("paper"), one trained here by its folder or file, or any Hugging Face model.

    A Hugging Face model is named by its folder or its name on the hub, and read in single precision unless another is
    asked for ("float64", "bfloat16", "float16").
    """
    from heedful.models.single_layer import SingleLayer
    from heedful.models.transformer_file import holds_transformer, load_transformer

    if not isinstance(name, str | Path) or not str(name):
        raise BadInput(f'A model is named by a string, such as "paper" or a folder; {name!r} was given.')
    name = str(name)
    path = Path(__file__).parent / "checkpoints" / "paper.safetensors" if name == "paper" else Path(name)
    if path.is_dir() and not (path / "config.json").exists():
        path = path / "model.safetensors"
        if not path.exists():
            raise BadCheckpoint(f"The folder {name!r} holds no model: neither model.safetensors nor config.json.")
    if path.is_file():
        if precision != "float32":
            raise BadInput(f"Only Hugging Face models have a choice of precision; {precision!r} was given.")
        model = load_transformer(path) if holds_transformer(path) else SingleLayer.load(path)
        try:
            model.network.to(device)
        except (RuntimeError, AssertionError) as error:
            raise BadInput(f"The device {device!r} cannot be used: {str(error).splitlines()[0]}") from None
        return model
    return _hugging_face().load_pretrained(name, device, precision)


def wrap(
    model: Any,
    tokenizer: Any = None,
    *,
    classes: Sequence[str] | None = None,
    unknown: int = 0,
    replacement: str = "[UNK]",
) -> Model:
    """A model that is already in memory.

    A Hugging Face model with its tokenizer or image processor; a torch module that makes logits of token numbers, with
    a function from a text to its tokens, each (number, start, end), and `unknown`, the number that stands in for a
    removed token; a pipeline of transformers, which is opened for its model, so that attention and gradients can be
    seen; a classifier of scikit-learn that takes texts, such as a pipeline with its vectoriser; or any function
    `list of texts -> scores`, whose removed words become `replacement`.
    """
    from torch.nn import Module

    if is_pipeline(model):
        model, tokenizer = parts_of(model)
    if isinstance(model, Module):
        if any(kind.__name__ == "PreTrainedModel" for kind in type(model).__mro__):
            return _hugging_face().wrap_pretrained(model, tokenizer)
        from heedful.models.torch_module import TorchModule

        if not callable(tokenizer):
            raise BadInput("A torch module is wrapped with a function from a text to its tokens (number, start, end).")
        splitter: Any = tokenizer
        return TorchModule(model, splitter, classes, unknown)
    from heedful.models.black_box import BlackBox

    if is_estimator(model):
        scores, names = function_of(model)
        return BlackBox(scores, names if classes is None else classes, replacement)
    if not callable(model):
        raise BadInput(f"A model, a module or a function can be wrapped; {type(model).__name__} was given.")
    return BlackBox(model, classes, replacement)


def _hugging_face() -> ModuleType:
    try:
        return import_module("heedful.models.hf.load")
    except ImportError as error:
        raise MissingPackage(
            "Hugging Face models need transformers and pillow, the extra [hf]; `make install` brings them."
        ) from error
