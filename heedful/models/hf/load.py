"""Loads Hugging Face models by name or folder, and wraps models that are already in memory."""

import json
import logging
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
import transformers
from huggingface_hub import constants, try_to_load_from_cache
from safetensors import SafetensorError
from torch import nn
from transformers import AutoConfig, AutoImageProcessor, AutoModelForMaskedLM, AutoTokenizer, PreTrainedModel
from transformers.utils.hub import cached_file

from heedful.errors import BadCheckpoint, BadInput, HeedfulError, Offline, Unsupported, describe_error
from heedful.models import Model
from heedful.models.attention_hook import ONE_THREAD
from heedful.models.budget import check_device
from heedful.models.hf.answer import HfAnswer
from heedful.models.hf.co_attention import HfCoAttention
from heedful.models.hf.decoder import HfDecoder
from heedful.models.hf.encoder import HfEncoder
from heedful.models.hf.encoder_decoder import HfEncoderDecoder
from heedful.models.hf.masked_word import HfMaskedWord
from heedful.models.hf.module import CustomModule
from heedful.models.hf.vision import HfVision
from heedful.models.hf.word_labels import HfWordLabels
from heedful.target import Returns

_PRECISIONS = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}
_CONFIGS = ("config.json", "tokenizer_config.json", "preprocessor_config.json", "processor_config.json")
_BUFFERS = ("position_ids", "token_type_ids", "inv_freq", "bias", "masked_bias")
_SHAPES = {
    "ForSequenceClassification": HfEncoder,
    "ForNextSentencePrediction": HfEncoder,
    "ForMultipleChoice": HfEncoder,
    "LxmertForQuestionAnswering": HfCoAttention,
    "LxmertModel": HfCoAttention,
    "ForQuestionAnswering": HfAnswer,
    "ForTokenClassification": HfWordLabels,
    "ForMaskedLM": HfMaskedWord,
    "ForCausalLM": HfDecoder,
    "LMHeadModel": HfDecoder,
    "ForConditionalGeneration": HfEncoderDecoder,
    "MTModel": HfEncoderDecoder,
    "ForImageClassification": HfVision,
    "ForImageClassificationWithTeacher": HfVision,
    "Model": HfEncoder,
}


def load_pretrained(name: str, device: str, precision: str) -> Model:
    """Loads a model from the hub or a folder, in the class that its configuration names."""
    if not isinstance(precision, str) or precision not in _PRECISIONS:
        raise BadInput(f"The precision is {precision!r}; give one of {', '.join(_PRECISIONS)}.")
    check_device(device)
    # While transformers builds a model, torch's default precision is the model's, in all threads.
    with ONE_THREAD, _in_a_sentence(name):
        _reach(name)
        _refuse_code(name)
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
        kinds = list(getattr(config, "architectures", None) or [])
        if not kinds:
            raise Unsupported(f"The configuration of {name!r} does not name a model class (no `architectures`).")
        shape = _shape_of(kinds[0])
        kind = getattr(transformers, kinds[0], None)
        if kind is None:
            raise Unsupported(f"The installed transformers has no {kinds[0]}, which {name!r} needs.")
        auto = AutoImageProcessor if shape is HfVision else AutoTokenizer
        network, reader = _complete(name, kind, auto, _PRECISIONS[precision])
        if shape is not HfVision and len(reader) <= len(reader.all_special_ids):
            raise BadCheckpoint(f"{name!r} has no tokenizer: its files are missing or empty.")
    network.to(device)
    with _in_a_sentence(name):
        return wrap_pretrained(network, reader)


def load_filler(name: str) -> tuple[Any, Any]:
    """A network that fills in words, whatever its configuration names, and its tokenizer; on the CPU."""
    with ONE_THREAD, _in_a_sentence(name):
        _reach(name)
        _refuse_code(name)
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
        if type(config) not in transformers.MODEL_FOR_MASKED_LM_MAPPING:
            raise Unsupported(
                f"{name!r} is a {config.model_type}, which does not fill in words; give a masked language model, such "
                "as conditional:google-bert/bert-base-uncased."
            )
        return _complete(name, AutoModelForMaskedLM, AutoTokenizer, torch.float32)


def _complete(name: str, kind: Any, auto: Any, dtype: torch.dtype) -> tuple[Any, Any]:
    """A network with all its weights, and its tokenizer or image processor."""
    options: dict[str, Any] = {"dtype": dtype, "trust_remote_code": False}
    with _quiet():
        network, loading_info = kind.from_pretrained(name, output_loading_info=True, **options)
    _check_complete(name, network, loading_info)
    return network.eval(), auto.from_pretrained(name, trust_remote_code=False)


def wrap_module(
    module: nn.Module, tokenizer: Any, returns: Returns | None = None, classes: Sequence[str] | None = None
) -> Model:
    """Wraps a torch module around a Hugging Face encoder, with the encoder's tokenizer."""
    network = CustomModule(module, tokenizer)
    try:
        return HfEncoder(network, tokenizer, returns, classes)
    except HeedfulError:
        raise
    # What somebody's module raises is not foreseeable.
    except Exception as error:
        name = type(module).__name__
        raise BadInput(f"{name} failed on tensors of its tokenizer with {describe_error(error)}.") from error


def wrap_pretrained(
    network: PreTrainedModel, reader: Any, returns: Returns | None = None, classes: Sequence[str] | None = None
) -> Model:
    """Wraps a model in memory with its tokenizer or image processor; its task decides the class."""
    shape = _shape_of(type(network).__name__)
    if reader is None:
        needed = "image processor" if shape is HfVision else "tokenizer"
        raise BadInput(f"A {type(network).__name__} needs its {needed}: heedful.wrap(model, {needed.split()[-1]}).")
    if network.config.is_encoder_decoder and shape is not HfEncoderDecoder:
        raise Unsupported(
            f"{type(network).__name__} classifies with an encoder and a decoder, which heedful does not support."
        )
    if shape is not HfVision and network.main_input_name != "input_ids":
        raise Unsupported(f"{type(network).__name__} reads neither text nor images to classify.")
    if shape is HfEncoder:
        return HfEncoder(network, reader, returns, classes)
    if classes is not None:
        raise BadInput(f"A {type(network).__name__} names its classes itself; leave `classes` out.")
    if shape is HfVision:
        return HfVision(network, reader, returns)
    if returns not in (None, "logits"):
        raise BadInput(f"A {type(network).__name__} says itself what it returns; leave `returns` out.")
    return shape(network, reader)


def _shape_of(kind: str) -> Any:
    for ending, shape in _SHAPES.items():
        if kind.endswith(ending):
            return shape
    raise Unsupported(
        f"heedful does not support {kind}: it explains models for the classification of sequences, tokens or images, "
        "question answering, multiple choice, masked or causal language models, encoder-decoders, and bare encoders."
    )


def _refuse_code(name: str) -> None:
    """Refuses a model whose files name Python code of its own; transformers would ask whether to run it."""
    for file in _CONFIGS:
        path = cached_file(name, file, _raise_exceptions_for_missing_entries=False)
        settings = {} if path is None else json.loads(Path(path).read_text(encoding="utf-8"))
        if isinstance(settings, dict) and settings.get("auto_map"):
            raise Unsupported(
                f"{name!r} brings Python code of its own (auto_map in {file}), and heedful never runs code from a "
                "model's files; wrap a model that you loaded yourself."
            )


def _check_complete(name: str, network: PreTrainedModel, loading_info: Mapping[str, Any]) -> None:
    """Refuses a checkpoint that lacks weights of the network, or has more layers or other weights than it."""
    kind = type(network).__name__
    if loading_info["missing_keys"]:
        first = sorted(loading_info["missing_keys"])[0]
        raise BadCheckpoint(
            f"{name!r} lacks weights of {kind} ({first}) that would be drawn at random; "
            "load a checkpoint that was trained for this class."
        )
    ignored = sorted(key for key in loading_info["unexpected_keys"] if not _is_unused(network, key))
    if ignored:
        raise BadCheckpoint(
            f"{name!r} has weights that {kind} would ignore ({ignored[0]}); its configuration does not belong to them."
        )


def _is_unused(network: PreTrainedModel, key: str) -> bool:
    """Whether a weight without a place in the network changes nothing: an old buffer, or a head of another task.

    A head is directly below the network or its base model, such as a pooler. A layer beyond the last one is no head.
    """
    *path, leaf = key.split(".")
    module: nn.Module = network
    for depth, part in enumerate(path):
        below = dict(module.named_children())
        if part not in below:
            return depth == 0 or (depth == 1 and path[0] == network.base_model_prefix)
        module = below[part]
    # Masks and positions were once saved with the module that uses them; a bias belongs to a module without parts.
    return leaf in _BUFFERS and (leaf != "bias" or any(True for _ in module.children()))


def _reach(name: str) -> None:
    """Raises an error at once if the hub cannot be reached; its own client would retry for half a minute."""
    if Path(name).is_dir() or try_to_load_from_cache(name, "config.json") is not None or constants.HF_HUB_OFFLINE:
        return
    address = urlsplit(constants.ENDPOINT)
    try:
        socket.getaddrinfo(address.hostname, address.port or 443)
    except OSError as error:
        raise OSError("the hub cannot be reached") from error


@contextmanager
def _in_a_sentence(name: str) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, EOFError) as error:
        raise BadCheckpoint(f"The weights of {name!r} are damaged: {str(error).splitlines()[0]}.") from error
    except HeedfulError:
        raise
    # A damaged configuration or tokenizer file may raise anything.
    except Exception as error:
        first = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        if (Path(name).is_absolute() or name.startswith(".")) and not Path(name).is_dir():
            raise BadCheckpoint(f"There is no folder {name!r}.") from None
        if Path(name).is_dir():
            raise BadCheckpoint(f"The folder {name!r} is not a complete Hugging Face model: {first}.") from error
        raise Offline(
            f'There is no model {name!r}: it is not "paper", "reviews", "writer" or a local folder or file, and it is '
            "not on the Hugging Face hub, or the hub cannot be reached."
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides progress bars and warnings while a model is loaded; problems that matter are raised as errors."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        logger.setLevel(level)
        if shown:
            transformers.utils.logging.enable_progress_bar()
