"""Figure 5: the gradient by Theorem 4.1 compared with autograd, word by word."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_FORMS = {"mean": "gradient-mean", "l1": "gradient-l1", "l2": "gradient-l2", "x-input": "gradient-x-input"}


@final
@dataclass(frozen=True)
class Figure5(Experiment):
    """Theorem 4.1 against autograd, for all four reductions to one number per word."""

    name: ClassVar[str] = "figure-5"
    part: ClassVar[ExperimentPart] = "paper"
    title: ClassVar[str] = "Theorem 4.1 against autograd"
    source: ClassVar[str] = "paper, Figure 5 and Theorem 4.1, Eq. (14)"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables words, cls."""
        text = workspace.text or FIGURE_4
        rows, places = [], []
        for form, method in _FORMS.items():
            autograd = explain(workspace.model, text, method, target=1)
            theorem = explain(workspace.model, text, "gradient-theorem", target=1, reduce=form)
            printed = explain(workspace.model, text, "gradient-theorem", target=1, reduce=form, query="fixed")
            for number, word in enumerate(autograd.units):
                gradients = {"autograd": float(autograd.scores[number]), "theorem": float(theorem.scores[number])}
                rows.append({"form": form, "position": number, "word": word, **gradients})
            cls = {"autograd": autograd, "printed": printed, "with the query's term": theorem}
            places.append({"form": form, **{name: float(gradient.facts["[cls]"]) for name, gradient in cls.items()}})
        return {"words": rows, "cls": places}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        words, places = numbers["words"], numbers["cls"]
        gap = float(np.abs(np.subtract(column(words, "autograd"), column(words, "theorem"))).max())
        real, printed, corrected = (
            np.array(column(places, name)) for name in ("autograd", "printed", "with the query's term")
        )
        return [
            Claim(
                "largest difference between Theorem 4.1 and autograd, at words",
                "equal",
                f"{gap:.1e}",
                "agrees" if gap < 1e-9 else "differs",
                "The closed form and autograd are independent computations; the difference is rounding."
                if gap < 1e-9
                else "The closed form and autograd differ here.",
            ),
            Claim(
                "the same at [cls]",
                "equal",
                f"{np.abs(real - printed).max():.1e} as printed, "
                f"{np.abs(real - corrected).max():.1e} with a term added",
                "corrected" if np.abs(real - printed).max() > 1e-9 > np.abs(real - corrected).max() else "differs",
                "The theorem holds the query fixed, but the query also depends on the embedding of [cls]; "
                "the missing term "
                f"{'closes' if np.abs(real - corrected).max() < 1e-9 else 'does not close'} the gap.",
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure gradients."""
        drawn = figure(7.5, 5.5)
        for number, form in enumerate(_FORMS, start=1):
            axes = quiet(drawn.add_subplot(2, 2, number))
            autograd, theorem = (column(numbers["words"], name, form=form) for name in ("autograd", "theorem"))
            place = np.arange(len(autograd))
            axes.bar(place, autograd, color=COLOURS[5], label="autograd")
            axes.plot(place, theorem, "x", color=COLOURS[1], markersize=4, label="Theorem 4.1")
            axes.set(title=f"gradient, {form}", xlabel="word of the text", ylabel="score")
        drawn.axes[0].legend(frameon=False)
        return {"gradients": drawn}
