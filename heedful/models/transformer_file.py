"""The file format of transformers that heedful trained."""

import json
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from heedful.errors import BadCheckpoint, BadInput
from heedful.family import build
from heedful.models.transformer import Transformer, TransformerConfig, initial_network
from heedful.models.vocabulary import SPECIAL_WORDS, Vocabulary

FORMAT = "heedful/transformer/1"


def save_transformer(model: Transformer, path: Path) -> None:
    """Writes weights and vocabulary to one safetensors file, with all weights in half precision."""
    tensors = {name: tensor.cpu().half().contiguous() for name, tensor in model.network.state_dict().items()}
    metadata = {
        "format": FORMAT,
        "config": json.dumps(asdict(model.network.config)),
        "classes": json.dumps(model.classes),
        "words": "\n".join(model.vocabulary.words),
    }
    save_file(tensors, path, metadata)


def holds_transformer(path: Path) -> bool:
    """Whether the file is one that `save_transformer` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            return (file.metadata() or {}).get("format") == FORMAT
    except (SafetensorError, OSError):
        return False


def load_transformer(path: Path) -> Transformer:
    """Loads a file that `save_transformer` wrote, in single precision."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
        config = build(TransformerConfig, "the model", json.loads(metadata["config"]))
        vocabulary, classes = Vocabulary(tuple(metadata["words"].split("\n"))), json.loads(metadata["classes"])
        if len(classes) != config.n_classes or vocabulary.words[:2] != SPECIAL_WORDS:
            raise ValueError("its classes or its vocabulary are invalid")
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise ValueError("some weights are not finite numbers")
        network = initial_network(config, len(vocabulary), seed=0)
        network.load_state_dict(tensors)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError, BadInput) as error:
        raise BadCheckpoint(f"{path.name} is not a valid heedful model: {str(error).splitlines()[0]}") from error
    return Transformer(network.eval(), vocabulary, classes)
