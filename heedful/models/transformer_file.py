"""The file format of transformers that heedful trained."""

import json
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError

from heedful.errors import BadCheckpoint, BadInput
from heedful.family import build
from heedful.models.checkpoints import check_sealed, read_config, read_names
from heedful.models.switched.config import TransformerConfig
from heedful.models.transformer import Transformer, initial_network
from heedful.run_folder import read_tensors, write_tensors

FORMATS = ("heedful/transformer/2", "heedful/transformer/1")
"""The newest first; it has a checksum."""


def save_transformer(model: Transformer, path: Path) -> None:
    """Writes weights and vocabulary to one safetensors file, with all weights in half precision."""
    tensors = {name: tensor.half() for name, tensor in model.network.state_dict().items()}
    metadata = {
        "format": FORMATS[0],
        "config": json.dumps(asdict(model.network.config)),
        "classes": json.dumps(model.classes),
        "words": "\n".join(model.vocabulary.words),
    }
    write_tensors(path, tensors, metadata)


def load_transformer(path: Path) -> Transformer:
    """Loads a file that `save_transformer` wrote, in single precision."""
    try:
        tensors, metadata = read_tensors(path)
        check_sealed(path, metadata)
        config = build(TransformerConfig, "the model", read_config(metadata))
        vocabulary, classes = read_names(metadata, config.n_classes)
        # Before the network is built: a wrong size must not take all of the memory.
        if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != config.all_shapes(len(vocabulary)):
            raise ValueError("the shapes of its weights do not match its settings")
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise ValueError("some weights are not finite numbers")
        network = initial_network(config, len(vocabulary), seed=0)
        network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError, BadInput) as error:
        reason = str(error).splitlines()[0].rstrip(".:")
        raise BadCheckpoint(f"{path.name} is not a valid heedful model: {reason}.") from error
    return Transformer(network.eval(), vocabulary, classes)
