"""Loads a model from a file, a folder or the hub, or wraps one that is already in memory."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from heedful.errors import BadCheckpoint, BadInput, MissingPackage
from heedful.models import Model
from heedful.models.budget import check_device
from heedful.models.foreign import function_of, is_estimator, is_pipeline, parts_of
from heedful.target import Returns, check_returns

BUNDLED = ("paper", "reviews", "writer")
"""The names of the models that come with the package."""


def load(name: str, device: str = "cpu", precision: str = "float32") -> Model:
    """A bundled model ("paper", "reviews", "writer"), one trained here by its folder or file, or any of Hugging Face.

    A Hugging Face model is named by its folder or its name on the hub, and loaded in single precision unless
    `precision` is set ("float64", "bfloat16", "float16"). "few-words:DATA" fits a logistic model of ten words to a data
    set or a table with labels (`few_words`).
    """
    if not isinstance(name, str | Path) or not str(name):
        raise BadInput(f'The name of a model must be a string, such as "paper" or a folder; {name!r} was given.')
    name = str(name)
    if name.startswith("few-words:"):
        from heedful.models.fitting.few_words import few_words

        return few_words(name.partition(":")[2])
    path = Path(__file__).parent / "checkpoints" / f"{name}.safetensors" if name in BUNDLED else Path(name)
    if path.is_dir() and not (path / "config.json").exists():
        path = path / "model.safetensors"
        if not path.exists():
            raise BadCheckpoint(f"The folder {name!r} contains no model: neither model.safetensors nor config.json.")
    if path.is_file():
        if precision != "float32":
            raise BadInput(f"Only Hugging Face models have a choice of precision; {precision!r} was given.")
        model = _from_file(path)
        check_device(device)
        model.network.to(device)
        return model
    return _hugging_face().load_pretrained(name, device, precision)


def _from_file(path: Path) -> Any:
    """The model of a file, by the format that it names."""
    from heedful.models.checkpoints import format_of
    from heedful.models.classic.file import CLASSIC_FORMAT, load_classic
    from heedful.models.encoder.file import FORMAT, load_encoder
    from heedful.models.language.file import WRITER_FORMAT, load_gpt2
    from heedful.models.single_layer import SingleLayer
    from heedful.models.transformer_file import FORMATS, load_transformer

    loaders = {FORMAT: load_encoder, WRITER_FORMAT: load_gpt2, CLASSIC_FORMAT: load_classic}
    loaders |= dict.fromkeys(FORMATS, load_transformer)
    return loaders.get(format_of(path), SingleLayer.load)(path)


def wrap(
    model: Any,
    tokenizer: Any = None,
    *,
    head: Any = None,
    classes: Sequence[str] | None = None,
    unknown: int = 0,
    replacement: str = "[UNK]",
    returns: Returns | None = None,
) -> Model:
    """Wraps a model that is already in memory.

    `model` is one of: a Hugging Face model, with its tokenizer or image processor; a torch module that contains a
    Hugging Face encoder, with its tokenizer; a SentenceTransformer, with `head`, the classifier of its vectors; a torch
    module that maps token ids to logits, with a function that splits a text into tokens (id, start, end), and
    `unknown`, the id that replaces a removed token; a transformers pipeline, whose model is used, so that attention and
    gradients are available; a scikit-learn classifier that takes texts, such as a pipeline with a vectorizer; or any
    function `list of texts -> scores`, where removed words become `replacement`.

    `returns` says what the outputs are: "logits", "independent-logits" (multi-label), "probabilities", or "scores"
    (decision values and other numbers). By default a Hugging Face model and a classifier of scikit-learn say it
    themselves. Of a module or function the outputs on short texts are tested: positive numbers that sum to 1 are
    probabilities; otherwise a module returns logits, and a function scores.
    """
    from torch.nn import Module

    check_returns(returns)
    if is_pipeline(model):
        model, tokenizer, applied = parts_of(model)
        returns = returns or applied
    if _is_of(model, "SentenceTransformer"):
        return _hugging_face("sentence").wrap_sentences(model, head, classes, returns, replacement)
    if head is not None:
        raise BadInput(
            "`head` goes with a SentenceTransformer; else wrap one torch module of encoder, pooling and head."
        )
    if isinstance(model, Module):
        if _is_of(model, "PreTrainedModel"):
            return _hugging_face().wrap_pretrained(model, tokenizer, returns, classes)
        if _is_of(tokenizer, "PreTrainedTokenizerBase"):
            return _hugging_face().wrap_module(model, tokenizer, returns, classes)
        from heedful.models.torch_module import TorchModule

        if not callable(tokenizer):
            raise BadInput("A torch module needs a function that splits a text into tokens (id, start, end).")
        splitter: Any = tokenizer
        return TorchModule(model, splitter, classes, unknown, returns)
    from heedful.models.black_box import BlackBox

    if is_estimator(model):
        scores, names, own = function_of(model)
        return BlackBox(scores, names if classes is None else classes, replacement, returns or own)
    if not callable(model):
        raise BadInput(f"wrap takes a model, a torch module or a function; {type(model).__name__} was given.")
    return BlackBox(model, classes, replacement, returns)


def _is_of(model: object, name: str) -> bool:
    """Whether it is of a class of that name, which need not be imported."""
    return any(kind.__name__ == name for kind in type(model).__mro__)


def _hugging_face(module: str = "load") -> ModuleType:
    try:
        return import_module(f"heedful.models.hf.{module}")
    except ImportError as error:
        raise MissingPackage(
            "Hugging Face models need the extra [hf]; run `make install`, or pip install transformers pillow."
        ) from error
