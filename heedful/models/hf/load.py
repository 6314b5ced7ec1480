"""Hugging Face models by their name, their folder, or already in memory."""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
import transformers
from huggingface_hub import constants, try_to_load_from_cache
from safetensors import SafetensorError
from transformers import AutoConfig, AutoImageProcessor, AutoTokenizer, PreTrainedModel

from heedful.errors import BadCheckpoint, BadInput, HeedfulError, Offline, Unsupported
from heedful.models import Model
from heedful.models.hf.decoder import HfDecoder
from heedful.models.hf.encoder import HfEncoder
from heedful.models.hf.encoder_decoder import HfEncoderDecoder
from heedful.models.hf.vision import HfVision

_PRECISIONS = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}
_SHAPES = {
    "ForSequenceClassification": HfEncoder,
    "ForCausalLM": HfDecoder,
    "LMHeadModel": HfDecoder,
    "ForConditionalGeneration": HfEncoderDecoder,
    "MTModel": HfEncoderDecoder,
    "ForImageClassification": HfVision,
    "ForImageClassificationWithTeacher": HfVision,
    "Model": HfEncoder,
}


def load_pretrained(name: str, device: str, precision: str) -> Model:
    """A model of the hub or of a folder, in the class that its own configuration names."""
    if precision not in _PRECISIONS:
        raise BadInput(f"A precision is one of {', '.join(_PRECISIONS)}; {precision!r} was given.")
    with _in_a_sentence(name):
        _reach(name)
        config = AutoConfig.from_pretrained(name)
        kinds = list(getattr(config, "architectures", None) or [])
        if not kinds:
            raise Unsupported(f"The configuration of {name!r} does not say which model it is (no `architectures`).")
        shape = _shape_of(kinds[0])
        kind = getattr(transformers, kinds[0], None)
        if kind is None:
            raise Unsupported(f"The installed transformers does not know {kinds[0]}, which {name!r} asks for.")
        with _quiet():
            network, found = kind.from_pretrained(name, dtype=_PRECISIONS[precision], output_loading_info=True)
        if found["missing_keys"]:
            first = sorted(found["missing_keys"])[0]
            raise BadCheckpoint(
                f"{name!r} lacks weights of {kinds[0]} ({first}) that would be drawn at random; was it trained for it?"
            )
        reader = (AutoImageProcessor if shape is HfVision else AutoTokenizer).from_pretrained(name)
        if shape is not HfVision and len(reader) <= len(reader.all_special_ids):
            raise BadCheckpoint(f"{name!r} has no tokenizer: its files are missing, or hold no words.")
    try:
        network = network.to(device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"The device {device!r} cannot be used: {str(error).splitlines()[0]}") from None
    return wrap_pretrained(network.eval(), reader)


def wrap_pretrained(network: PreTrainedModel, reader: Any) -> Model:
    """A model in memory with its tokenizer, or its image processor, by the shape of its task."""
    shape = _shape_of(type(network).__name__)
    if reader is None:
        wanted = "image processor" if shape is HfVision else "tokenizer"
        raise BadInput(
            f"A {type(network).__name__} is wrapped with its {wanted}: heedful.wrap(model, {wanted.split()[-1]})."
        )
    if network.config.is_encoder_decoder and shape is not HfEncoderDecoder:
        raise Unsupported(
            f"{type(network).__name__} classifies by an encoder and a decoder, which heedful cannot follow."
        )
    if shape is not HfVision and network.main_input_name != "input_ids":
        raise Unsupported(f"{type(network).__name__} reads no text and is no classifier of pictures.")
    return shape(network, reader)


def _shape_of(kind: str) -> Any:
    for ending, shape in _SHAPES.items():
        if kind.endswith(ending):
            return shape
    raise Unsupported(
        f"{kind} has no scalar to explain: it neither classifies texts or pictures nor continues or translates a text."
    )


def _reach(name: str) -> None:
    """Fails at once where a download cannot begin; the hub's own client would try for half a minute."""
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
    # What a damaged configuration or tokenizer file raises is not foreseeable.
    except Exception as error:
        first = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        if (Path(name).is_absolute() or name.startswith(".")) and not Path(name).is_dir():
            raise BadCheckpoint(f"There is no folder {name!r}.") from None
        if Path(name).is_dir():
            raise BadCheckpoint(f"The folder {name!r} is not a whole Hugging Face model: {first}.") from error
        raise Offline(
            f'There is no model {name!r}: it is neither "paper" nor a folder or file here, and the Hugging Face hub '
            "does not have it or cannot be reached."
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Loading draws a bar and may warn; what matters is raised."""
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
