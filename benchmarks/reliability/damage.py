"""Ways to damage a file: flipped bits, cuts, holes; edited JSON, safetensors headers and weights."""

import json
import random
from collections.abc import Callable
from typing import Any

import torch
from safetensors.torch import load, save

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 3, 10**12, 10**400, 0.5, float("nan"), float("inf"), "", "x", "nan", "\ud800", []),
    *([[]], {}, {"a": 1}),
)


def damage_bytes(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """One flipped bit as a rule; or the file is cut, holed, lengthened or replaced."""
    place, n = rng.randrange(max(1, len(content))), rng.choice((1, 8, 100))
    kind = rng.choice(("bit", "bit", "bit", "cut", "hole", "zeros", "more", "twice", "empty", "other"))
    if kind == "bit" and content:
        bit = rng.randrange(8)
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        return bytes(changed), f"bit {bit} of byte {place} flipped"
    results: dict[str, bytes] = {
        "cut": content[:place],
        "hole": content[:place] + content[place + n :],
        "zeros": content[:place] + bytes(len(content[place : place + n])) + content[place + n :],
        "more": content + rng.randbytes(n),
        "twice": content + content,
        "empty": b"",
        "other": rng.choice((b"\x89PNG\r\n", b"{}", b"[]", b"null", b"not a file of ours", bytes(64))),
    }
    return results.get(kind, b""), f"{kind} at byte {place}, length {n}"


def damage_json(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """One value of the document replaced, removed, doubled or exchanged with another."""
    document = json.loads(content)
    what = edit(rng, document)
    return json.dumps(document).encode(), what


def damage_header(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """One value of a safetensors file's header edited: names, shapes and places of tensors, and the metadata."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    metadata = header.get("__metadata__", {})
    inner = [name for name, value in metadata.items() if _is_json(value)]
    if inner and rng.random() < 0.6:
        name = rng.choice(inner)
        value = json.loads(metadata[name])
        what = edit(rng, value) if isinstance(value, dict | list) and value else "replaced"
        metadata[name] = json.dumps(rng.choice(VALUES) if what == "replaced" or rng.random() < 0.2 else value)
        what = f"metadata {name}: {what}, now {metadata[name][:60]}"
    else:
        what = edit(rng, header)
    written = json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + content[8 + length :], what


def damage_tensors(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """One weight removed, renamed or added, in a file that is otherwise whole."""
    tensors = load(content)
    name = rng.choice(sorted(tensors))
    kind = rng.choice(("removed", "renamed", "added"))
    if kind == "added":
        tensors["bert.encoder.layer.7.output.dense.weight"] = torch.zeros(2, 2)
    else:
        weight = tensors.pop(name)
        tensors |= {f"{name}s": weight} if kind == "renamed" else {}
    return save(tensors, {"format": "pt"}), f"{name} {kind}"


def edit(rng: random.Random, document: Any) -> str:
    """Changes one value inside a JSON document, and says which."""
    holder, key, path = rng.choice(list(_places(document, "")))
    changes: dict[str, Callable[[], Any]] = {
        "replaced": lambda: rng.choice(VALUES),
        "nudged": lambda: _nudged(rng, holder[key]),
        "doubled": lambda: holder[key] * 2 if isinstance(holder[key], list | str | int | float) else [holder[key]] * 2,
    }
    kind = rng.choice(("replaced", "replaced", "nudged", "nudged", "removed", "doubled", "added"))
    if kind == "removed":
        del holder[key]
    elif kind == "added":
        holder.update({"strange": 1}) if isinstance(holder, dict) else holder.append(holder[key])
    else:
        holder[key] = changes[kind]()
        return f"{path} {kind}: {str(holder[key])[:60]!r}"
    return f"{path} {kind}"


def _nudged(rng: random.Random, value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + rng.choice((1, -1, 1000))
    if isinstance(value, str):
        return value[::-1] + "s"
    return value[1:] if isinstance(value, list) else {**value, "strange": None}


def _places(document: Any, path: str) -> Any:
    """Every value with its holder, key and path; long lists by their first and last values."""
    if isinstance(document, dict):
        keys: list[Any] = list(document)
    else:
        keys = [0, len(document) - 1] if document else []
    for key in keys:
        yield document, key, f"{path}/{key}"
        if isinstance(document[key], dict | list):
            yield from _places(document[key], f"{path}/{key}")


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False
