"""Sparse autoencoders: dictionaries of features that are trained, measured, read, explained and used to steer.

import heedful

dictionary = heedful.features.fit(activations, width=512)        # an array, rows × dimensions
active = dictionary.encode(activations)                          # how active each feature is in each row
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful.features.ablation import effect
    from heedful.features.autoencoder import kinds
    from heedful.features.cached import cache
    from heedful.features.dictionary import Dictionary
    from heedful.features.fitting import fit
    from heedful.features.fitting import load_dictionary as load
    from heedful.features.from_texts import train_dictionary as train
    from heedful.features.reading.active import active
    from heedful.features.reading.describing import describe
    from heedful.features.seeds import stability
    from heedful.features.splice import measure_quality as measure
    from heedful.features.steering_run import steer
    from heedful.features.units import importance

_HOME = {
    "Dictionary": "dictionary",
    "active": "reading.active",
    "cache": "cached",
    "describe": "reading.describing",
    "effect": "ablation",
    "fit": "fitting",
    "importance": "units",
    "kinds": "autoencoder",
    "load": "fitting",
    "measure": "splice",
    "stability": "seeds",
    "steer": "steering_run",
    "train": "from_texts",
}
_DEFINED_AS = {"load": "load_dictionary", "measure": "measure_quality", "train": "train_dictionary"}
__all__ = [
    "Dictionary",
    "active",
    "cache",
    "describe",
    "effect",
    "fit",
    "importance",
    "kinds",
    "load",
    "measure",
    "stability",
    "steer",
    "train",
]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def __getattr__(name: str) -> object:
    # torch takes more than a second to import, so nothing is imported before it is used.
    if name not in _HOME:
        raise AttributeError(f"module 'heedful.features' has no attribute {name!r}")
    return getattr(import_module(f"heedful.features.{_HOME[name]}"), _DEFINED_AS.get(name, name))
