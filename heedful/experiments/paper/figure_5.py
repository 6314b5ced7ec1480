"""Figure 5: the gradient by Theorem 4.1 compared with autograd, coordinate by coordinate."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.models.network import Network
from heedful.models.single_layer import SingleLayer
from heedful.models.training import initial_weights
from heedful.theory.gradient import gradient

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_D_E = 80
"""Of the paper's figure, "for illustrative purpose"."""
_FORMS = {"mean": "gradient-mean", "l1": "gradient-l1", "l2": "gradient-l2", "x-input": "gradient-x-input"}


@final
@dataclass(frozen=True)
class Figure5(Experiment):
    """Theorem 4.1 against autograd: the d_e coordinates of a word's gradient.

    As in the paper's figure, on a model with d_e = 80, untrained: the theorem holds for any weights. And on the bundled
    model, with d_e = 128, for all four reductions to one number per word.
    """

    name: ClassVar[str] = "figure-5"
    part: ClassVar[ExperimentPart] = "paper"
    title: ClassVar[str] = "Theorem 4.1 against autograd"
    source: ClassVar[str] = "paper, Figure 5 and Theorem 4.1, Eq. (14)"
    takes_text: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables coordinates, words, cls."""
        text = workspace.text or FIGURE_4
        small = _untrained(workspace.model, _D_E, workspace.seed)
        coordinates = [row for model in (small, workspace.model) for row in _coordinates(model, text)]
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
        return {"coordinates": coordinates, "words": rows, "cls": places}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        words, places = numbers["words"], numbers["cls"]
        gap = float(np.abs(np.subtract(column(words, "autograd"), column(words, "theorem"))).max())
        real, printed, corrected = (
            np.array(column(places, name)) for name in ("autograd", "printed", "with the query's term")
        )
        return [
            *(_of_coordinates(numbers, d_e) for d_e in _sizes(numbers)),
            Claim(
                "largest difference between Theorem 4.1 and autograd, one number per word",
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
        """Draws the figures coordinates, gradients."""
        drawn = figure(7.5, 5.5)
        for number, form in enumerate(_FORMS, start=1):
            axes = quiet(drawn.add_subplot(2, 2, number))
            autograd, theorem = (column(numbers["words"], name, form=form) for name in ("autograd", "theorem"))
            place = np.arange(len(autograd))
            axes.bar(place, autograd, color=COLOURS[5], label="autograd")
            axes.plot(place, theorem, "x", color=COLOURS[1], markersize=4, label="Theorem 4.1")
            axes.set(title=f"gradient, {form}", xlabel="word of the text", ylabel="score")
        drawn.axes[0].legend(frameon=False)
        return {"coordinates": _draw_coordinates(numbers), "gradients": drawn}


def _untrained(model: SingleLayer, d_e: int, seed: int) -> SingleLayer:
    """A model with other sizes and the same words, before any training."""
    config = replace(model.network.config, d_e=d_e)
    weights = initial_weights(config, len(model.vocabulary), seed)
    network = Network(config, weights).to(model.network.W_q.device, torch.float64)
    return SingleLayer(network, model.vocabulary, model.classes)


def _coordinates(model: SingleLayer, text: str) -> list[dict[str, Cell]]:
    """Every coordinate of the gradient at the word where it is longest, and how far the two are apart at all words."""
    net, document = model.network, model.encode(text)
    e = model.embed([document]).double().detach().requires_grad_()
    autograd = torch.autograd.grad(net(e)[0, 1], e)[0][0].cpu().numpy()
    places = np.arange(1, len(document.ids))
    with torch.no_grad():
        q = torch.einsum("hae,e->ha", net.W_q, e[0, 0]) + net.b_q
        closed = gradient(e[0], q, net.W_k, net.W_v, net.b_v, net.W_l[:, 1]).cpu().numpy()
    gap = float(np.abs(autograd - closed)[places].max())
    longest = int(places[np.linalg.norm(autograd[places], axis=1).argmax()])
    about: dict[str, Cell] = {"d_e": net.config.d_e, "word": document.pieces[longest], "n_words": len(places)}
    return [
        {**about, "coordinate": number, "autograd": float(one), "theorem": float(other), "largest difference": gap}
        for number, (one, other) in enumerate(zip(autograd[longest], closed[longest], strict=True))
    ]


def _sizes(numbers: Numbers) -> list[int]:
    return list(dict.fromkeys(int(d_e) for d_e in column(numbers["coordinates"], "d_e")))


def _of_coordinates(numbers: Numbers, d_e: int) -> Claim:
    gap = max(column(numbers["coordinates"], "largest difference", d_e=d_e))
    n_words = int(column(numbers["coordinates"], "n_words", d_e=d_e)[0])
    same = gap < 1e-9
    return Claim(
        f"largest difference between Theorem 4.1 and autograd over the {d_e} coordinates of {n_words} words",
        "equal",
        f"{gap:.1e}",
        "agrees" if same else "differs",
        ("An untrained model, as large as the paper's for its figure." if d_e == _D_E else "The bundled model.")
        + ("" if same else " The closed form and autograd are not the same here."),
    )


def _draw_coordinates(numbers: Numbers) -> "Figure":
    """Bars for autograd and crosses for the theorem, one of each per coordinate."""
    sizes = _sizes(numbers)
    drawn = figure(7.5, 2.6 * len(sizes))
    for number, d_e in enumerate(sizes, start=1):
        axes = quiet(drawn.add_subplot(len(sizes), 1, number))
        autograd, theorem = (column(numbers["coordinates"], name, d_e=d_e) for name in ("autograd", "theorem"))
        word = next(row["word"] for row in numbers["coordinates"] if row["d_e"] == d_e)
        axes.bar(np.arange(d_e), autograd, color=COLOURS[5], label="autograd")
        axes.plot(np.arange(d_e), theorem, "x", color=COLOURS[1], markersize=4, label="Theorem 4.1")
        axes.set(title=f"gradient at “{word}”, d_e = {d_e}", xlabel="coordinate", ylabel="derivative")
    drawn.axes[0].legend(frameon=False)
    return drawn
