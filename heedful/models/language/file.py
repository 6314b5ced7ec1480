"""The file format of language models that heedful trained."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError

from heedful.errors import BadCheckpoint, BadInput
from heedful.family import build
from heedful.models.checkpoints import check_sealed, read_config
from heedful.models.language.bpe import BYTES, BytePairs, spelt, unspelt
from heedful.models.language.gpt2 import Gpt2Config, network_with
from heedful.models.language.writer import Writer
from heedful.run_folder import read_tensors, write_tensors

WRITER_FORMAT = "heedful/gpt2/2"


def save_gpt2(model: Writer, path: Path) -> None:
    """Writes weights and vocabulary to one safetensors file, with all weights in half precision."""
    metadata = {
        "format": WRITER_FORMAT,
        "config": json.dumps(asdict(model.network.config)),
        "starts": json.dumps(model.starts),
        **vocabulary_as_text(model.vocabulary),
    }
    write_tensors(path, {name: tensor.half() for name, tensor in model.network.state_dict().items()}, metadata)


def load_gpt2(path: Path) -> Writer:
    """Loads a file that `save_gpt2` wrote, in single precision."""
    try:
        tensors, metadata = read_tensors(path)
        check_sealed(path, metadata)
        config, vocabulary = build(Gpt2Config, "the model", read_config(metadata)), vocabulary_of_text(metadata)
        if len(vocabulary) != config.n_tokens:
            raise ValueError(f"it has {config.n_tokens:,} word vectors, and {len(vocabulary):,} tokens")
        # Before the layers are built: a wrong number of them must not take all of the memory.
        if len({name.split(".")[1] for name in tensors if name.startswith("layers.")}) != config.depth:
            raise ValueError("the shapes of its weights do not match its settings")
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise ValueError("some weights are not finite numbers")
        network, starts = network_with(config, tensors), json.loads(metadata["starts"])
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError, BadInput) as error:
        reason = str(error).splitlines()[0].rstrip(".:")
        raise BadCheckpoint(f"{path.name} is not a valid heedful model: {reason}.") from error
    return Writer(network, vocabulary, starts is True)


def vocabulary_as_text(vocabulary: BytePairs) -> dict[str, str]:
    """Tokens, pairs and special tokens as lines of text."""
    return {
        "tokens": "\n".join(map(spelt, vocabulary.tokens)),
        "merges": "\n".join(f"{left} {right}" for left, right in vocabulary.merges),
        "special": json.dumps(vocabulary.special),
    }


def vocabulary_of_text(lines: Mapping[str, str]) -> BytePairs:
    """The vocabulary of those lines; raises ValueError or KeyError if they are none."""
    tokens = tuple(map(unspelt, lines["tokens"].split("\n")))
    merges = tuple(tuple(map(int, line.split(" "))) for line in lines["merges"].split("\n") if line)
    special = tuple(json.loads(lines["special"]))
    vocabulary = BytePairs(tokens, tuple((left, right) for left, right in merges), special)
    if not special or len({*tokens}) != len(tokens) or not all(0 <= n < len(tokens) for n in special):
        raise ValueError("its tokens are not those of a vocabulary")
    if len(vocabulary.ranks) != len(merges) or len(vocabulary.byte_tokens) != len(BYTES):
        raise ValueError("its pairs are not those of a vocabulary")
    return vocabulary
