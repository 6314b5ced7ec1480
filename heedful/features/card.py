"""The card of a dictionary: where it comes from, and how good it was when it was made."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, final


@final
@dataclass(frozen=True)
class Card:
    """Where a dictionary comes from. `model` is the fingerprint of a model, empty for activations of no known model."""

    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Those of the kind and of the training."""
    model: str = ""
    model_name: str = ""
    part: str = "residual"
    layer: int = -1
    """The layer whose activations were read; −1 if that is not known."""
    data: str = ""
    n_rows: int = 0
    """The number of rows of activations in the training."""
    seed: int = 0
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """How good the dictionary is, measured on data that was held out where there was any."""
    command: str = ""

    def as_json(self) -> str:
        """The card as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def of_json(text: str) -> "Card":
        """The card that `as_json` wrote; raises ValueError or TypeError for anything else."""
        kept = json.loads(text)
        names = {own.name: own.type for own in fields(Card)}
        if not isinstance(kept, dict) or not kept.keys() <= names.keys():
            raise ValueError("its card is not one of heedful")
        if any(type(value) is not names[name] for name, value in kept.items() if names[name] in (int, str)):
            raise ValueError("its card has a value of the wrong type")
        return Card(**kept)

    @property
    def place(self) -> str:
        """The layer and part in words."""
        if self.layer < 0:
            return "activations of no known layer"
        names = {"residual": "the residual stream that enters", "attention": "the attention output of"}
        return f"{names.get(self.part, 'the MLP output of')} layer {self.layer}"

    def as_markdown(self) -> str:
        """The card as Markdown."""
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        lines = [
            f"- Kind: {self.kind}, {settings}",
            f"- Activations: {self.place}" + (f" of {self.model_name} `{self.model}`" if self.model else ""),
            f"- Data: {self.data or 'not stated'}; {self.n_rows:,} rows in training, seed {self.seed}",
            *([f"- Command: `{self.command}`"] if self.command else []),
            *(f"- {name}: {_shown(value)}" for name, value in self.metrics.items()),
        ]
        return "\n".join(["# Card of a dictionary of features", "", *lines, ""])


def _shown(metric: Any) -> str:
    """A metric as a page shows it: a value, or [value, low, high]."""
    if not isinstance(metric, list):
        return str(metric)
    value, low, high = metric
    if value is None:
        return "unknown"
    return f"{value:.4g}" if low is None or high is None else f"{value:.4g} [{low:.4g}, {high:.4g}]"
