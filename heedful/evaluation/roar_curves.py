"""What ROAR measures: the accuracy of retrained models against the share of replaced words."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput, unknown_name
from heedful.evaluation.replaced_words import Mode
from heedful.explanations import load_pandas
from heedful.run_folder import unsealed
from heedful.statistics.quantity import Quantity, over_seeds

CONTROL = "random"
"""The method whose ranking is random; all others are compared with it."""


@final
@dataclass(frozen=True, eq=False)
class RoarCurves:
    """Test accuracies of models that were retrained without a share of the words, per mode, method, share and seed.

    Under "remove" the strongest words of each method are replaced, so lower is better; under "keep" the weakest, so
    higher is better. Intervals are over training seeds, at 95 %, and not corrected for the number of methods.
    """

    dataset: str
    explained: str
    imputation: str
    n_train: int
    n_test: int
    modes: tuple[Mode, ...]
    methods: tuple[str, ...]
    shares: tuple[float, ...]
    accuracies: Float[np.ndarray, "mode method share seed"]
    notes: tuple[str, ...] = ()

    @property
    def n_seeds(self) -> int:
        """The number of trainings behind each point."""
        return self.accuracies.shape[-1]

    def curve(self, method: str, mode: Mode | None = None) -> tuple[Quantity, ...]:
        """The accuracy at every share."""
        return tuple(over_seeds(row, (0.0, 1.0)) for row in self._of(method, mode))

    def differences(self, method: str, mode: Mode | None = None) -> tuple[Quantity, ...]:
        """How far the curve lies above (+) or below (−) that of random words at every share, paired by seed."""
        return tuple(over_seeds(row, (-1.0, 1.0)) for row in self._of(method, mode) - self._of(CONTROL, mode))

    def from_random(self, method: str, mode: Mode | None = None) -> Quantity:
        """The same difference, averaged over the shares above 0; NaN where there are none."""
        away = (self._of(method, mode) - self._of(CONTROL, mode))[np.array(self.shares) > 0]
        return over_seeds(away.mean(axis=0), (-1.0, 1.0)) if len(away) else Quantity(float("nan"))

    def _of(self, method: str, mode: Mode | None) -> Float[np.ndarray, "share seed"]:
        mode = self.modes[0] if mode is None else mode
        for kind, name, names in (("method", method, self.methods), ("mode", mode, self.modes)):
            if name not in names:
                raise unknown_name(f"{kind} in this result", name, names)
        return self.accuracies[self.modes.index(mode), self.methods.index(method)]

    def as_rows(self) -> list[dict[str, Any]]:
        """One dictionary for each mode, method and share, ready for a data frame."""
        rows = []
        for mode in self.modes:
            for method in self.methods:
                both = zip(self.shares, self.curve(method, mode), self.differences(method, mode), strict=True)
                for share, accuracy, away in both:
                    row = {"mode": mode, "method": method, "share": share, "accuracy": accuracy.value}
                    row |= {"low": accuracy.low, "high": accuracy.high, "from_random": away.value}
                    rows.append(row | {"from_random_low": away.low, "from_random_high": away.high})
        return rows

    def to_frame(self) -> Any:
        """A pandas DataFrame of the rows."""
        return load_pandas().DataFrame(self.as_rows())

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; None stands for an interval that does not exist."""
        plain = {**asdict(self), "accuracies": self.accuracies.tolist()}
        rows = [{name: None if value != value else value for name, value in row.items()} for row in self.as_rows()]
        return {**plain, "rows": rows}

    def save(self, path: str | Path) -> None:
        """Writes a file by its ending: .json, .html, .png, .svg or .pdf; `RoarCurves.load` reads .json back."""
        # As `_repr_html_`: drawings are on the value.
        from heedful.render import write

        write(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> "RoarCurves":
        """The result of a .json file, such as results.json of a run's folder."""
        try:
            content = unsealed(Path(path).read_text(encoding="utf-8"))
            content.pop("rows")
            content |= {name: tuple(content[name]) for name in ("modes", "methods", "shares", "notes")}
            content["accuracies"] = np.array(content["accuracies"])
            return RoarCurves(**content)
        except OSError as error:
            raise BadInput(f"{path} cannot be read: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{path} is not a result of ROAR, or it is damaged.") from error

    def __repr__(self) -> str:
        away = [f"{name} {self.from_random(name):+.3f}" for name in self.methods if name != CONTROL]
        return f"<ROAR on {self.dataset}, {self.modes[0]}, from random: {'; '.join(away) or 'no other method'}>"[:300]

    def _repr_html_(self) -> str:
        from heedful.render.curves.roar_page import roar_page

        return roar_page(self, "cell.html")
