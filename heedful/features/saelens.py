"""Dictionaries in SAELens' format, a folder with cfg.json and sae_weights.safetensors, read and written without it.

    z = W_enc (x − b_dec) + b_enc      a = rule(z)      x̂ = Σ_j a_j W_dec,j + b_dec

In its `standard` and `jumprelu` an activation a_j does not contain ‖W_dec,j‖; a dictionary's s_j = a_j ‖W_dec,j‖ does.
b_dec is subtracted where `apply_b_dec_to_input` says so. Reference: SAELens 6.54, `saes/` and `loading/`.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from torch import Tensor

from heedful.errors import BadCheckpoint, BadInput, Unsupported
from heedful.features.autoencoder import Rule
from heedful.features.card import Card
from heedful.features.dictionary import Dictionary
from heedful.run_folder import read_tensors, write_atomically, write_tensors

WEIGHTS, CONFIG = "sae_weights.safetensors", "cfg.json"
_DENSITY, _SCALE = "sparsity.safetensors", "activation_scaler.json"
_KINDS = {
    "standard": "relu",
    "topk": "topk",
    "jumprelu": "jumprelu",
    "batchtopk": "batchtopk",
    "matryoshka_batchtopk": "matryoshka",
}
"""Architectures, and what the same kind is called here. Both BatchTopK kinds are stored as `jumprelu` once trained."""
_LAYER = r"(?:\w+\.)*(?:layers?|h)\.(\d+)"
_PLACES = (
    (r"blocks\.(\d+)\.(?:hook_resid_pre|hook_in)", "residual", 0),
    (r"blocks\.(\d+)\.(?:hook_resid_post|hook_out)", "residual", 1),
    (r"blocks\.(\d+)\.(?:hook_attn_out|attn\.hook_out)", "attention", 0),
    (r"blocks\.(\d+)\.(?:hook_mlp_out|mlp\.hook_out)", "mlp", 0),
    (_LAYER, "residual", 1),
    (rf"{_LAYER}\.(?:self_attn|attn|attention|self_attention)", "attention", 0),
    (rf"{_LAYER}\.mlp", "mlp", 0),
)
"""Names of hooks, of TransformerLens and of modules on the hub. What leaves a layer enters the next one."""
_WRITTEN = {"residual": "hook_resid_pre", "attention": "hook_attn_out", "mlp": "hook_mlp_out"}
_EQUAL = 1e-3
"""Lengths whose ratio is nearer to 1 than this are equal."""
_ROUNDING = 1e-6
_LEAST = 1e-10
"""SAELens adds it to a density before it takes the logarithm."""


def folder_of(path: Path) -> Path | None:
    """The folder of a dictionary of SAELens, given as the folder or as its weights; None for any other path."""
    folder = path.parent if path.name == WEIGHTS else path
    return folder if (folder / WEIGHTS).is_file() else None


def read_saelens(folder: Path) -> Dictionary:
    """The dictionary of a folder that SAELens wrote. It computes the same; one that cannot be is refused.

    The largest activations are unknown (0) unless heedful wrote the folder, and so are densities without a file of
    them; `measured` determines both.
    """
    try:
        return _read(folder)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        message = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        if isinstance(error, FileNotFoundError):
            message = f"{Path(error.filename).name} is missing"
        reason = message.splitlines()[0].rstrip(".:")
        raise BadCheckpoint(f"{folder.name} is not a dictionary of SAELens that can be read: {reason}.") from error


def _read(folder: Path) -> Dictionary:
    config = _config(folder / CONFIG)
    tensors = {name: tensor.double() for name, tensor in read_tensors(folder / WEIGHTS)[0].items()}
    _check_tensors(config, tensors)
    scale = _scale(folder, config)
    W_enc, W_dec, b_dec = tensors["W_enc"].T * scale, tensors["W_dec"] / scale, tensors["b_dec"] / scale
    lengths = W_dec.norm(dim=1)
    # A length that is rounded to 1 is 1: what heedful wrote is read back unchanged.
    lengths = torch.where((lengths - 1).abs() < _ROUNDING, 1.0, lengths)
    centre = W_enc @ b_dec if config.get("apply_b_dec_to_input", True) else 0.0
    largest, density = _statistics(folder, len(lengths))
    return Dictionary(
        W_enc=(W_enc * lengths[:, None]).float().contiguous(),
        b_enc=((tensors["b_enc"] - centre) * lengths).float(),
        W_dec=(W_dec / lengths.clamp(min=1e-30)[:, None]).float(),
        b_dec=b_dec.float(),
        rule=_rule(config, tensors, lengths, scale),
        card=_card(config),
        largest=largest,
        density=density,
    )


def _config(path: Path) -> dict[str, Any]:
    """The settings in the form of SAELens 6; refuses those with which a dictionary cannot compute the same."""
    config = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise ValueError("its settings are not a dictionary")
    if "metadata" not in config:
        config = _newer(config)
    architecture, scaling = config["architecture"], config.get("normalize_activations", "none")
    if architecture not in _KINDS:
        raise ValueError(f"its architecture is {architecture!r}; {', '.join(_KINDS)} can be read")
    if scaling not in ("none", "expected_average_only_in"):
        raise ValueError(f"it normalises every row ({scaling}), which a dictionary does not")
    if config.get("activation_fn", "relu") != "relu":
        raise ValueError(f"its activation function is {config['activation_fn']!r}; relu can be read")
    if not isinstance(config["metadata"], dict):
        raise ValueError("its metadata are not a dictionary")
    return config


def _newer(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a version before 6, which had one level and other names."""
    names = {
        "hook_point": "hook_name",
        "hook_point_head_index": "hook_head_index",
        "activation_fn_str": "activation_fn",
    }
    newer = {names.get(name, name): value for name, value in config.items()}
    newer = {"architecture": "standard", **newer, "metadata": newer}
    if newer.get("activation_fn") == "topk":
        newer |= {"architecture": "topk", "activation_fn": "relu", "k": newer["activation_fn_kwargs"]["k"]}
    scaling = newer.get("normalize_activations") or "none"
    return newer | {"normalize_activations": "expected_average_only_in" if scaling is True else scaling}


def _check_tensors(config: Mapping[str, Any], tensors: dict[str, Tensor]) -> None:
    """Refuses tensors that are missing, surplus, of another shape or not finite; thresholds become one tensor."""
    architecture = config["architecture"]
    if "log_threshold" in tensors:
        tensors["threshold"] = tensors.pop("log_threshold").exp()
    if "topk_threshold" in tensors:
        tensors["threshold"] = tensors.pop("topk_threshold").expand(len(tensors["b_enc"]))
    if "scaling_factor" in tensors and bool((tensors.pop("scaling_factor") != 1).any()):
        raise ValueError("it rescales its activations (scaling_factor)")
    d_e, width = int(config["d_in"]), int(config["d_sae"])
    shapes = {"W_enc": (d_e, width), "b_enc": (width,), "W_dec": (width, d_e), "b_dec": (d_e,)}
    if architecture not in ("standard", "topk"):
        shapes["threshold"] = (width,)
    if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != shapes:
        raise ValueError(f"its tensors are not those of {architecture}, {width} × {d_e}")
    if not all(tensor.isfinite().all() for tensor in tensors.values()):
        raise ValueError("some of its numbers are not finite")


def _scale(folder: Path, config: Mapping[str, Any]) -> float:
    """What rows are multiplied by before they are encoded: 1, or the number beside a checkpoint."""
    if config.get("normalize_activations", "none") == "none":
        return 1.0
    if not (folder / _SCALE).is_file():
        raise ValueError(f"it was trained on rescaled rows, and {_SCALE} with their scale is not in the folder")
    scale = float(json.loads((folder / _SCALE).read_text(encoding="utf-8"))["scaling_factor"])
    if not 0 < scale < float("inf"):
        raise ValueError(f"the scale of its rows is {scale}")
    return scale


def _rule(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor], lengths: Float[Tensor, "feature"], scale: float
) -> Rule:
    """The rule in units of s_j."""
    architecture = config["architecture"]
    scaled = config.get("rescale_acts_by_decoder_norm", architecture not in ("standard", "topk", "jumprelu"))
    thresholds = tensors.get("threshold", torch.zeros_like(lengths)) * (1 / scale if scaled else lengths)
    if architecture != "topk":
        return Rule(thresholds.float()[None])
    k, width = config["k"], len(lengths)
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"its k is {k!r}")
    if not scaled and k < width and not float(lengths.max()) <= (1 + _EQUAL) * float(lengths.min()):
        raise ValueError(
            "it selects k features by activations without the lengths of their directions "
            "(rescale_acts_by_decoder_norm is false), and these differ"
        )
    return Rule(thresholds.float()[None], min(k, width))


def _statistics(folder: Path, width: int) -> tuple[Float[Tensor, "feature"], Float[Tensor, "feature"]]:
    """The largest activation and the density of every feature, 0 where they are not stored."""
    nothing = torch.zeros(width)
    if not (folder / _DENSITY).is_file():
        return nothing, nothing.clone()
    stored, _ = read_tensors(folder / _DENSITY)
    density = (10 ** stored["sparsity"].float() - _LEAST).clamp(0.0, 1.0)
    largest = stored.get("largest", nothing).float()
    if {density.shape, largest.shape} != {(width,)} or not bool((density + largest).isfinite().all()):
        raise ValueError(f"{_DENSITY} does not fit it")
    return largest, density


def _card(config: Mapping[str, Any]) -> Card:
    """Its card, if heedful wrote it; otherwise the place and the kind as the metadata name them."""
    about = config["metadata"]
    if "heedful" in about:
        return Card.of_json(json.dumps(about["heedful"]))
    kind = _KINDS.get(about.get("training_architecture"), _KINDS[config["architecture"]])
    part, layer = place_of(about.get("hook_name")) if about.get("hook_head_index") is None else ("residual", -1)
    data = f"{about.get('dataset_path') or 'data not stated'}, {about.get('hook_name') or 'no hook named'}, SAELens"
    settings = {name: value for name, value in about.items() if isinstance(value, int | float | str)}
    return Card(kind, settings, model_name=str(about.get("model_name") or ""), part=part, layer=layer, data=data)


def place_of(hook: object) -> tuple[str, int]:
    """The part and the layer of a hook's name; layer −1 for a name that is not known."""
    for pattern, part, more in _PLACES:
        match = re.fullmatch(pattern, hook) if isinstance(hook, str) else None
        if match:
            return part, int(match[1]) + more
    return "residual", -1


def write_saelens(dictionary: Dictionary, folder: Path) -> None:
    """Writes a folder that SAELens loads, and that computes the same there; b_dec is folded into b_enc."""
    rule = dictionary.rule
    if len(rule.thresholds) > 1:
        raise Unsupported("SAELens has no dictionary that refines its code; train this one with passes=0.")
    positive = bool((rule.thresholds > 0).any())
    if rule.k is not None and positive:
        raise Unsupported("SAELens has no dictionary with both k and thresholds; it has one or the other.")
    if folder.suffix == ".safetensors":
        raise BadInput(f"A dictionary of SAELens is a folder; {folder.name} is the name of a file.")
    weights = {"W_enc": dictionary.W_enc.T, "b_enc": dictionary.b_enc, "W_dec": dictionary.W_dec}
    weights |= {"b_dec": dictionary.b_dec, **({"threshold": rule.thresholds[0]} if positive else {})}
    kind = {"architecture": "jumprelu" if positive else "standard"}
    if rule.k is not None:
        kind = {"architecture": "topk", "k": rule.k, "rescale_acts_by_decoder_norm": False}
    logarithm = (dictionary.density + _LEAST).log10()
    write_tensors(folder / WEIGHTS, weights, {})
    write_tensors(folder / _DENSITY, {"sparsity": logarithm, "largest": dictionary.largest}, {})
    write_atomically(folder / CONFIG, json.dumps({**kind, **_written(dictionary)}, indent=1))


def _written(dictionary: Dictionary) -> dict[str, Any]:
    """The settings that every kind has; the card is among the metadata, so that it is read back."""
    card = dictionary.card
    return {
        "d_in": dictionary.d_e,
        "d_sae": dictionary.width,
        "dtype": "float32",
        "device": "cpu",
        "apply_b_dec_to_input": False,
        "normalize_activations": "none",
        "reshape_activations": "none",
        "metadata": {
            "sae_lens_version": "6.54.0",
            "model_name": card.model_name or None,
            "hook_name": f"blocks.{card.layer}.{_WRITTEN[card.part]}" if card.layer >= 0 else None,
            "heedful": json.loads(card.as_json()),
        },
    }
