"""The file format of encoders over word pieces."""

import json
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError

from heedful.errors import BadCheckpoint, BadInput
from heedful.family import build
from heedful.models.checkpoints import read_config
from heedful.models.encoder.classifier import EncoderClassifier
from heedful.models.encoder.network import EncoderConfig, EncoderNetwork
from heedful.models.encoder.word_pieces import SPECIAL_PIECES, WordPieces
from heedful.run_folder import read_tensors, write_tensors

FORMAT = "heedful/encoder/1"


def save_encoder(model: EncoderClassifier, path: Path) -> None:
    """Writes weights and vocabulary to one safetensors file, with all weights in half precision."""
    metadata = {
        "format": FORMAT,
        "config": json.dumps(asdict(model.network.config)),
        "classes": json.dumps(model.classes),
        "pieces": "\n".join(model.vocabulary.pieces),
    }
    write_tensors(path, {name: tensor.half() for name, tensor in model.network.state_dict().items()}, metadata)


def load_encoder(path: Path) -> EncoderClassifier:
    """Loads a file that `save_encoder` wrote, in single precision."""
    try:
        tensors, metadata = read_tensors(path)
        if "checksum" not in metadata:
            raise ValueError("it is damaged: its checksum is missing")
        config = build(EncoderConfig, "the model", read_config(metadata))
        pieces, classes = tuple(metadata["pieces"].split("\n")), json.loads(metadata["classes"])
        if pieces[: len(SPECIAL_PIECES)] != SPECIAL_PIECES or len({*pieces}) != len(pieces):
            raise ValueError("its pieces are not those of a vocabulary")
        if not isinstance(classes, list) or len({*map(str, classes)}) != config.n_classes:
            raise ValueError(f"it has {config.n_classes} classes, and they are named {classes}")
        # Before the layers are built: a wrong number of them must not take all of the memory.
        if len({name.split(".")[1] for name in tensors if name.startswith("layers.")}) != config.depth:
            raise ValueError("the shapes of its weights do not match its settings")
        with torch.device("meta"):
            network = EncoderNetwork(config, len(pieces))
        network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise ValueError("some weights are not finite numbers")
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError, BadInput) as error:
        reason = str(error).splitlines()[0].rstrip(".:")
        raise BadCheckpoint(f"{path.name} is not a valid heedful model: {reason}.") from error
    return EncoderClassifier(network.eval(), WordPieces(pieces), [str(name) for name in classes])
