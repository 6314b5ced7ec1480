"""The lecture's sketch of W_e and W_p: a token's vector is a column of one and a value of the other."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Claim, Numbers, column
from heedful.experiments.figure import figure
from heedful.experiments.reviews import FIGURE_1
from heedful.experiments.workspace import Workspace

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_PARTS = {"W_e": "W_e[:, j], of the word", "W_p": "W_p(t), of the position", "e": "e_t, their sum"}
_SHOWN = 32


@final
@dataclass(frozen=True)
class Embeddings(Experiment):
    """The vectors of a text's tokens: word plus position, from the weights."""

    name: ClassVar[str] = "embeddings"
    part: ClassVar[ExperimentPart] = "lectures"
    title: ClassVar[str] = "W_e, W_p and their sum"
    source: ClassVar[str] = "lecture, Section 9.1, token embeddings; paper, Eqs. (2) to (4)"
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables coordinates, sums."""
        model = workspace.single_layer
        document = model.encode(workspace.text or FIGURE_1)
        W_e, W_p = (weight.detach().double().cpu().numpy() for weight in (model.network.W_e, model.network.W_p))
        e = model.embed([document])[0].detach().double().cpu().numpy()
        coordinates, sums = [], []
        for t, (token, j) in enumerate(zip(document.pieces, document.ids.tolist(), strict=True)):
            made = {"W_e": W_e[j], "W_p": W_p[t], "e": e[t]}
            lengths = {f"length of {name}": float(np.linalg.norm(values)) for name, values in made.items()}
            sums.append({"token": token, **lengths, "gap": float(np.abs(e[t] - W_e[j] - W_p[t]).max())})
            for place in range(min(_SHOWN, len(W_e[j]))):
                values = {name: float(vector[place]) for name, vector in made.items()}
                coordinates.append({"t": t, "token": token, "coordinate": place, **values})
        return {"coordinates": coordinates, "sums": sums}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        gap = max(column(numbers["sums"], "gap"))
        word, place = (np.mean(column(numbers["sums"], f"length of {name}")) for name in ("W_e", "W_p"))
        verdict = "agrees" if gap < 1e-6 else "differs"
        why = "The weights were added here, and compared with the vectors that the model computes."
        lengths = f"word {word:.2f}, position {place:.2f} on average"
        return [
            Claim("e_t is W_e[:, j] + W_p(t)", "equal", f"largest difference {gap:.1e}", verdict, why, general=True),
            Claim("lengths of the two parts", "", lengths, "new", "The lecture gives no sizes."),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure embeddings."""
        rows = numbers["coordinates"]
        n_shown = 1 + max(int(row["coordinate"] or 0) for row in rows)
        tokens = [str(row["token"]) for row in rows[::n_shown]]
        drawn = figure(9.5, 1.3 + 0.22 * len(tokens))
        parts = {name: np.array(column(rows, name)).reshape(len(tokens), n_shown) for name in _PARTS}
        limit = max(float(np.abs(values).max()) for values in parts.values())
        for number, (name, values) in enumerate(parts.items(), start=1):
            axes = drawn.add_subplot(1, 3, number)
            axes.imshow(values, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
            axes.set_title(_PARTS[name], size=9)
            axes.set_xlabel(f"coordinate, the first {n_shown}", size=8)
            axes.set_yticks(range(len(tokens)), tokens if number == 1 else [""] * len(tokens), size=7)
        drawn.colorbar(drawn.axes[0].images[0], ax=drawn.axes, shrink=0.8)
        return {"embeddings": drawn}
