"""A dictionary of features: their directions in a layer, and how active each is in a vector."""

import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from jaxtyping import Float
from safetensors import SafetensorError
from torch import Tensor

from heedful.errors import BadCheckpoint, BadInput, in_short, unknown_name
from heedful.features.activations import find_site
from heedful.features.added_part import check_added
from heedful.features.autoencoder import Autoencoder, Rule, Weights
from heedful.features.card import Card
from heedful.features.source import check_finite, numbers_of, rows_of
from heedful.models import Model, check_model
from heedful.models.budget import check_device
from heedful.models.fingerprint import hash_of, own_fingerprint
from heedful.models.layered import LayeredModel
from heedful.run_folder import path_of, read_tensors, write_atomically, write_tensors

if TYPE_CHECKING:
    from heedful.features.units import By, FeatureModel

FORMAT = "heedful/features/1"
FILE = "dictionary.safetensors"


@final
@dataclass(frozen=True, eq=False)
class Dictionary:
    """What is left of an autoencoder after training; the same for every kind.

        pre = W_enc x + b_enc      s = rule(pre)      x̂ = Σ_j s_j d_j + b_dec,   ‖d_j‖ = 1

    An activation s_j is the lecture's feature activation a_j ‖W_dec,j‖, in the units of the model's own activations.
    """

    W_enc: Float[Tensor, "feature d_e"]
    b_enc: Float[Tensor, "feature"]
    W_dec: Float[Tensor, "feature d_e"]
    """The directions d_j, one per row, of length 1."""
    b_dec: Float[Tensor, "d_e"]
    rule: Rule
    card: Card
    largest: Float[Tensor, "feature"]
    """The largest activation of each feature in the data it was measured on."""
    density: Float[Tensor, "feature"]
    """The share of the rows of that data in which each feature is active."""
    model: Model | None = None
    """The model whose layer it belongs to, if that is known here; it is never saved."""

    def __repr__(self) -> str:
        name = self.card.model_name or self.card.model
        model = f" of {name}" if name else ""
        return f"<{self.card.kind} dictionary: {self.width:,} features of {self.card.place}{model}>"

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.W_enc)

    @property
    def d_e(self) -> int:
        """The number of dimensions of the activations."""
        return self.W_enc.shape[1]

    @property
    def directions(self) -> Float[np.ndarray, "feature d_e"]:
        """The direction of every feature, of length 1."""
        return self.W_dec.double().cpu().numpy()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that `encode` and `decode` compute with."""
        rule = torch.tensor([-1 if self.rule.k is None else self.rule.k, self.rule.step], dtype=torch.float64)
        return hash_of(self.W_enc, self.b_enc, self.W_dec, self.b_dec, self.rule.thresholds, rule)

    def encode(self, x: Any) -> Any:
        """How active every feature is in rows of activations (…, d_e), each row by itself.

        An array gives an array and a tensor a tensor, through which gradients flow.
        """
        if not isinstance(x, Tensor):
            array = numbers_of(x)
            flat = rows_of(array.reshape(-1, array.shape[-1] if array.ndim else 1)).to(self.W_enc)
            check_finite(flat)
            parts = [self.encode(part) for part in flat.split(_ROWS)]
            return torch.cat(parts).cpu().numpy().reshape(*array.shape[:-1], self.width)
        return self._active(self.before_rule(x), -1)

    def before_rule(self, x: Float[Tensor, "..."]) -> Float[Tensor, "*row feature"]:
        """W_enc x + b_enc, which the rule makes activations of; with several passes that of the last."""
        if x.shape[-1:] != (self.d_e,):
            raise BadInput(f"The dictionary reads rows of {self.d_e} dimensions; {_last(x)} were given.")
        x = x.to(self.W_enc.dtype)
        pre = x @ self.W_enc.T + self.b_enc
        for number in range(len(self.rule.thresholds) - 1):
            pre = pre + self.rule.step * ((x - self.decode(self._active(pre, number))) @ self.W_enc.T)
        return pre

    def decode(self, activations: Any) -> Any:
        """The rows that activations of the features (…, feature) stand for: Σ_j s_j d_j + b_dec."""
        if not isinstance(activations, Tensor):
            given = torch.from_numpy(numbers_of(activations)).to(self.W_dec)
            return self.decode(given).cpu().numpy()
        if activations.shape[-1:] != (self.width,):
            raise BadInput(
                f"The dictionary has {self.width:,} features; {_last(activations):,} activations were given."
            )
        return activations.to(self.W_dec.dtype) @ self.W_dec + self.b_dec

    def _active(self, pre: Float[Tensor, "*row feature"], number: int) -> Float[Tensor, "*row feature"]:
        # What is not a number stays so: it must not pass for a feature that is silent.
        above = torch.where(pre <= self.rule.thresholds[number], 0.0, pre).relu()
        if self.rule.k is None or self.rule.k >= self.width:
            return above
        values, places = above.topk(self.rule.k, dim=-1, sorted=False)
        return torch.zeros_like(above).scatter(-1, places, values)

    def check_feature(self, feature: object) -> int:
        """The number of a feature; one that there is not is refused."""
        if isinstance(feature, bool) or not isinstance(feature, int | np.integer) or not 0 <= feature < self.width:
            raise BadInput(f"The dictionary has features 0 to {self.width - 1:,}; {in_short(feature)} was given.")
        return int(feature)

    def check_features(self, features: Any) -> tuple[int, ...]:
        """The numbers of different features, in their order."""
        if isinstance(features, str) or not isinstance(features, Iterable):
            raise BadInput(f"Give the numbers of features as a list, such as [12, 40]; {in_short(features)} was given.")
        return tuple(dict.fromkeys(map(self.check_feature, features)))

    def bound(self, model: Model) -> "Dictionary":
        """The same dictionary with the model it belongs to; another model is refused."""
        check_model(model)
        given = own_fingerprint(model)
        if self.card.model and given != self.card.model:
            name = f" ({self.card.model_name})" if self.card.model_name else ""
            raise BadInput(f"The dictionary belongs to the model {self.card.model}{name}; this model is {given}.")
        if self.card.part != "residual" and self.card.layer >= 0 and isinstance(model, LayeredModel):
            # A model of images reads no text; its layers are checked where they are read.
            with suppress(BadInput):
                check_added(model, model.encode("A text."), find_site(model, self.card.part, self.card.layer))
        return replace(self, model=model)

    def clamp(
        self, values: Mapping[int, int | float | str], model: Model | None = None
    ) -> AbstractContextManager[None]:
        """Inside this context the model goes on with features held at these activations, by number; see `clamped`."""
        # The module reads dictionaries.
        from heedful.features.clamp import clamped

        return clamped(self, values, model)

    def ablate(self, features: Iterable[int], model: Model | None = None) -> AbstractContextManager[None]:
        """Inside this context the model goes on without these features: they are held at 0."""
        if not (chosen := self.check_features(features)):
            raise BadInput("Give at least one feature to remove, such as [12].")
        return self.clamp(dict.fromkeys(chosen, 0.0), model)

    def push(
        self, direction: int | Float[np.ndarray, "d_e"], length: int | float | str, model: Model | None = None
    ) -> AbstractContextManager[None]:
        """Inside this context a vector of this length is added, along a feature or any direction; see `pushed`."""
        from heedful.features.clamp import pushed

        return pushed(self, direction, length, model)

    def as_units(self, model: Model | None = None, n: int = 64, by: "By" = "contribution") -> "FeatureModel":
        """The model with the features that are active in a text as units, at most n of them; see `FeatureModel`.

        `heedful.explain(dictionary.as_units(model), text, "shapley-sampled")` says which features an output depends on.
        """
        from heedful.features.units import feature_model

        return feature_model(self, model, n, by)

    def to(self, device: str) -> "Dictionary":
        """The same dictionary on a device."""
        check_device(device)
        names = ("W_enc", "b_enc", "W_dec", "b_dec", "largest", "density")
        moved = {name: getattr(self, name).to(device) for name in names}
        return replace(self, **moved, rule=replace(self.rule, thresholds=self.rule.thresholds.to(device)))

    @torch.no_grad()
    def measured(self, activations: Any) -> "Dictionary":
        """The same dictionary with the largest activations and the densities of its features on rows of activations."""
        rows, largest = rows_of(activations), torch.zeros_like(self.b_enc)
        counts = largest.clone()
        for part in rows.split(_ROWS):
            active = self.encode(part.to(self.W_enc))
            largest = torch.maximum(largest, active.amax(dim=0))
            counts += (active > 0).sum(dim=0)
        return replace(self, largest=largest, density=counts / len(rows))

    def save(self, path: str | Path, half: bool = False, format: str = "heedful") -> None:
        """Writes a .safetensors file, or a folder with that file and its card; or a folder that SAELens reads.

        `half` stores the two matrices in half precision, which SAELens' format does not.
        """
        if format not in ("heedful", "saelens"):
            raise unknown_name("format", format, ("heedful", "saelens"))
        if format == "heedful":
            return self._save(path_of(path), half)
        if half:
            raise BadInput("Half precision is stored in heedful's own format alone; leave half or format out.")
        # The module reads dictionaries.
        from heedful.features.saelens import write_saelens

        return write_saelens(self, path_of(path))

    def _save(self, path: Path, half: bool) -> None:
        whole = file_of(path)
        big = {"W_enc": self.W_enc, "W_dec": self.W_dec}
        tensors = {name: tensor.half() if half else tensor for name, tensor in big.items()}
        small = {"b_enc": self.b_enc, "b_dec": self.b_dec, "largest": self.largest, "density": self.density}
        rule = {"k": self.rule.k, "step": self.rule.step}
        metadata = {"format": FORMAT, "card": self.card.as_json(), "rule": json.dumps(rule)}
        write_tensors(whole, {**tensors, **small, "thresholds": self.rule.thresholds}, metadata)
        if whole != path:
            write_atomically(path / "card.md", self.card.as_markdown())


_ROWS = 4096


def _last(given: Tensor) -> int:
    """The size of the last axis; 0 for a single number."""
    return given.shape[-1] if given.ndim else 0


def file_of(path: Path) -> Path:
    """The file of a dictionary: the path itself, or the file in a folder."""
    return path if path.suffix == ".safetensors" else path / FILE


def read_dictionary(path: Path) -> Dictionary:
    """The dictionary of a file that `save` wrote; a damaged one is refused."""
    try:
        stored, metadata = read_tensors(path)
        if metadata.get("format") != FORMAT or "checksum" not in metadata:
            raise ValueError("it is not a dictionary of heedful")
        tensors: dict[str, Any] = {name: tensor.float() for name, tensor in stored.items()}
        rule, card = json.loads(metadata["rule"]), Card.of_json(metadata["card"])
        thresholds, (width, d_e) = tensors.pop("thresholds"), tensors["W_enc"].shape
        shapes = {"W_enc": (width, d_e), "W_dec": (width, d_e), "b_dec": (d_e,)}
        shapes |= dict.fromkeys(("b_enc", "largest", "density"), (width,))
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes or thresholds.shape[1:] != (width,):
            raise ValueError("its shapes do not fit each other")
        if not all(tensor.isfinite().all() for tensor in (*tensors.values(), thresholds)):
            raise ValueError("some of its numbers are not finite")
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".:")
        raise BadCheckpoint(f"{path.name} is not a valid dictionary: {reason}.") from error
    if stored["W_dec"].dtype == torch.float16:
        # The activations are in units of directions whose length is 1.
        tensors["W_dec"] = torch.nn.functional.normalize(tensors["W_dec"], dim=1)
    return Dictionary(**tensors, rule=Rule(thresholds, rule["k"], rule["step"]), card=card)


def dictionary_of(
    kind: Autoencoder, weights: Weights, smallest: Float[Tensor, "_"], scale: float, card: Card
) -> Dictionary:
    """The dictionary of trained weights, with lengths of directions and the scale of the rows folded in."""
    with torch.no_grad():
        norms = weights.W_dec.norm(dim=1).clamp(min=1e-12)
        lengths = torch.ones_like(norms) if kind.norms == "unit" else norms
        centre = weights.W_enc @ weights.b_dec if kind.centres else 0.0
        rule = kind.rule(weights, smallest)
        return Dictionary(
            W_enc=(weights.W_enc * lengths[:, None]).contiguous(),
            b_enc=scale * (weights.b_enc - centre) * lengths,
            W_dec=weights.W_dec / norms[:, None],
            b_dec=scale * weights.b_dec,
            rule=replace(rule, thresholds=(scale * rule.thresholds).contiguous()),
            card=card,
            largest=torch.zeros_like(norms),
            density=torch.zeros_like(norms),
        )
