"""The file format of classic models."""

import json
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError

from heedful.errors import BadCheckpoint, BadInput
from heedful.family import build
from heedful.models.checkpoints import read_config, read_names
from heedful.models.classic.classifier import Classic
from heedful.models.classic.network import ClassicConfig, ClassicNetwork
from heedful.run_folder import read_tensors, write_tensors

CLASSIC_FORMAT = "heedful/classic/1"


def save_classic(model: Classic, path: Path) -> None:
    """Writes weights and vocabulary to one safetensors file, with word vectors in half precision."""
    tensors = {name: tensor.half() if name == "W_e" else tensor for name, tensor in model.network.state_dict().items()}
    metadata = {
        "format": CLASSIC_FORMAT,
        "config": json.dumps(asdict(model.network.config)),
        "classes": json.dumps(model.classes),
        "words": "\n".join(model.vocabulary.words),
    }
    write_tensors(path, tensors, metadata)


def load_classic(path: Path) -> Classic:
    """Loads a file that `save_classic` wrote, in single precision."""
    try:
        tensors, metadata = read_tensors(path)
        if "checksum" not in metadata:
            raise ValueError("it is damaged: its checksum is missing")
        config = build(ClassicConfig, "the model", read_config(metadata))
        vocabulary, classes = read_names(metadata, config.n_classes)
        # Without memory: a wrong size must not take all of it.
        with torch.device("meta"):
            network = ClassicNetwork(config, len(vocabulary))
        shapes = {name: tensor.shape for name, tensor in network.state_dict().items()}
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
            raise ValueError("the shapes of its weights do not match its settings")
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise ValueError("some weights are not finite numbers")
        network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError, BadInput) as error:
        reason = str(error).splitlines()[0].rstrip(".:")
        raise BadCheckpoint(f"{path.name} is not a valid heedful model: {reason}.") from error
    return Classic(network.eval(), vocabulary, classes)
