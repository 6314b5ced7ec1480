"""What the files of models that are trained here have in common: settings, names, and a checksum."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from heedful.models.vocabulary import SPECIAL_WORDS, Vocabulary


def format_of(path: Path) -> str:
    """The format that a file of weights names; empty for another file."""
    try:
        with safe_open(path, framework="pt") as file:
            return (file.metadata() or {}).get("format", "")
    except (SafetensorError, OSError):
        return ""


def check_sealed(path: Path, metadata: Mapping[str, str]) -> None:
    """Raises ValueError for a file without a checksum that should have one, or that does not match its card's.

    `read_tensors` has verified the checksum. Files of the first format have none; the card beside them states the hash.
    """
    if "checksum" in metadata:
        return
    if not metadata["format"].endswith("/1"):
        raise ValueError("it is damaged: its checksum is missing")
    for card in (path.with_suffix(".md"), path.with_name("card.md")):
        stated = re.search(f"{re.escape(path.name)}: `([0-9a-f]{{64}})`", _text(card))
        if stated is not None and stated[1] != hashlib.sha256(path.read_bytes()).hexdigest():
            raise ValueError(f"it is damaged: its hash is not the one that {card.name} states")


def _text(card: Path) -> str:
    return card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""


def read_config(metadata: Mapping[str, str]) -> dict[str, Any]:
    """The settings of the network."""
    config = json.loads(metadata["config"])
    if not isinstance(config, dict):
        raise ValueError("its settings are not a dictionary")
    return config


def read_names(metadata: Mapping[str, str], n_classes: int) -> tuple[Vocabulary, tuple[str, ...]]:
    """The vocabulary and the names of the classes, all of them different."""
    words, classes = metadata["words"].split("\n"), json.loads(metadata["classes"])
    if not isinstance(classes, list) or not all(isinstance(name, str) and name.strip() for name in classes):
        raise ValueError("its classes are not a list of names")
    if len(classes) != n_classes or len({*classes}) != n_classes:
        raise ValueError(f"it has {n_classes} classes, and they are named {', '.join(map(repr, classes))}")
    if tuple(words[:2]) != SPECIAL_WORDS or len({*words[2:]}) != len(words[2:]):
        raise ValueError("its words are not those of a vocabulary")
    return Vocabulary(tuple(words)), tuple(classes)
