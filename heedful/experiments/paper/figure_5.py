"""Figure 5: the gradient by Theorem 4.1 compared with autograd, coordinate by coordinate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch

from heedful.errors import BadInput, in_short
from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.explainers.gradient import ONLY_ROUNDING
from heedful.models.network import Network
from heedful.models.question import Question, ask
from heedful.models.recording import Recordable
from heedful.models.single_layer import SingleLayer
from heedful.models.training import initial_weights
from heedful.theory.gradient import gradient

if TYPE_CHECKING:
    from heedful.experiments.figure import Axes, Figure

_D_E = 80
"""Of the paper's figure, "for illustrative purpose"."""
_ALONE = "Theorem 4.1 is of the single layer alone; this model is of another kind, so the bars are autograd's."
_NO_THEOREM = Claim("Theorem 4.1 against autograd", "equal", "", "not measured", _ALONE)
_FORMS = {"mean": "gradient-mean", "l1": "gradient-l1", "l2": "gradient-l2", "x-input": "gradient-x-input"}


@final
@dataclass(frozen=True)
class Figure5(Experiment):
    """Theorem 4.1 against autograd: the d_e coordinates of a word's gradient.

    As in the paper's figure, on a model with d_e = 80, untrained: the theorem holds for any weights. And on the bundled
    model, with d_e = 128, for all four reductions to one number per word. The word is the one with the longest
    gradient, or a named one. Models of another kind have autograd's gradient alone.
    """

    name: ClassVar[str] = "figure-5"
    part: ClassVar[ExperimentPart] = "paper"
    title: ClassVar[str] = "Theorem 4.1 against autograd"
    source: ClassVar[str] = "paper, Figure 5 and Theorem 4.1, Eq. (14)"
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables coordinates, words, cls."""
        text, target = workspace.text or FIGURE_4, workspace.target
        models = [workspace.model]
        if workspace.is_single_layer and workspace.single_layer.network.config.d_e != _D_E:
            models.insert(0, _untrained(workspace.single_layer, _D_E, workspace.seed))
        coordinates = [row for model in models for row in _coordinates(model, text, target, workspace.word)]
        rows, places = [], []
        for form, method in _FORMS.items():
            autograd = explain(workspace.model, text, method, target=target)
            named, rounding = {"autograd": autograd}, ONLY_ROUNDING in autograd.notes
            if workspace.is_single_layer:
                settings = {"target": target, "reduce": form}
                named["theorem"] = explain(workspace.model, text, "gradient-theorem", **settings)
                printed = explain(workspace.model, text, "gradient-theorem", query="fixed", **settings)
                cls = {"autograd": autograd, "printed": printed, "with the query's term": named["theorem"]}
                places.append({"form": form, **{name: float(one.facts["[cls]"]) for name, one in cls.items()}})
            for number, word in enumerate(autograd.units):
                gradients = {name: float(explanation.scores[number]) for name, explanation in named.items()}
                rows.append({"form": form, "position": number, "word": word, "rounding": rounding, **gradients})
        return {"coordinates": coordinates, "words": rows, "cls": places}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        words, places = numbers["words"], numbers["cls"]
        if not places:
            return [_NO_THEOREM]
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
                general=True,
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
                general=True,
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures coordinates, gradients."""
        drawn = figure(7.5, 5.5)
        for number, form in enumerate(_FORMS, start=1):
            axes = quiet(drawn.add_subplot(2, 2, number))
            rows = [row for row in numbers["words"] if row["form"] == form]
            _bars_and_crosses(axes, rows)
            zero = ": zero up to rounding" if rows[0].get("rounding") else ""
            axes.set(title=f"gradient, {form}{zero}", xlabel="word of the text", ylabel="score")
        _legend_above(drawn)
        return {"coordinates": _draw_coordinates(numbers), "gradients": drawn}


def _untrained(model: SingleLayer, d_e: int, seed: int) -> SingleLayer:
    """A model with other sizes and the same words, before any training."""
    config = replace(model.network.config, d_e=d_e)
    weights = initial_weights(config, len(model.vocabulary), seed)
    network = Network(config, weights).to(model.network.W_q.device, torch.float64)
    return SingleLayer(network, model.vocabulary, model.classes)


def _coordinates(model: Recordable, text: str, target: str | None, word: str | None) -> list[dict[str, Cell]]:
    """Every coordinate of the gradient at one word, and how far autograd and theorem are apart at all words."""
    question = ask(model, [text], target)
    document, autograd = question.documents[0], question.gradient.gradients[0]
    places = np.flatnonzero(document.words >= 0)
    units = document.units("word")
    allowed = places if word is None else places[[units[at] == word for at in document.words[places]]]
    if not len(allowed):
        raise BadInput(f"The model reads no word {word!r} in this text; it reads {in_short(', '.join(units))}.")
    longest = int(allowed[np.linalg.norm(autograd[allowed], axis=1).argmax()])
    columns = {"autograd": autograd[longest]}
    about: dict[str, Cell] = {"d_e": autograd.shape[1], "word": document.pieces[longest], "n_words": len(places)}
    if isinstance(model, SingleLayer):
        closed = _by_theorem(model, question)
        columns["theorem"] = closed[longest]
        about["largest difference"] = float(np.abs(autograd - closed)[places].max())
    return [
        {**about, "coordinate": number, **{name: float(values[number]) for name, values in columns.items()}}
        for number in range(autograd.shape[1])
    ]


@torch.no_grad()
def _by_theorem(model: SingleLayer, question: Question) -> np.ndarray:
    """The closed form at every token, in double precision."""
    net = model.network
    e = model.embed(question.documents).double()[0]
    W_q, b_q, W_k, W_v, b_v, W_l = (x.double() for x in (net.W_q, net.b_q, net.W_k, net.W_v, net.b_v, net.W_l))
    q = torch.einsum("hae,e->ha", W_q, e[0]) + b_q
    return gradient(e, q, W_k, W_v, b_v, W_l[:, question.targets[0].index]).cpu().numpy()


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
        ("An untrained model, as large as the paper's for its figure." if d_e == _D_E else "The explained model.")
        + ("" if same else " The closed form and autograd are not the same here."),
        general=True,
    )


def _bars_and_crosses(axes: "Axes", rows: Sequence[Mapping[str, Cell]]) -> None:
    """Bars for autograd, and crosses for the theorem where it applies."""
    axes.bar(np.arange(len(rows)), column(rows, "autograd"), color=COLOURS[5], label="autograd")
    if "theorem" in rows[0]:
        crosses = column(rows, "theorem")
        axes.plot(np.arange(len(rows)), crosses, "x", color=COLOURS[1], markersize=4, label="Theorem 4.1")


def _draw_coordinates(numbers: Numbers) -> "Figure":
    """Bars for autograd and crosses for the theorem, one of each per coordinate."""
    sizes = _sizes(numbers)
    drawn = figure(7.5, 2.6 * len(sizes))
    for number, d_e in enumerate(sizes, start=1):
        axes = quiet(drawn.add_subplot(len(sizes), 1, number))
        rows = [row for row in numbers["coordinates"] if row["d_e"] == d_e]
        _bars_and_crosses(axes, rows)
        axes.set(title=f"gradient at “{rows[0]['word']}”, d_e = {d_e}", xlabel="coordinate", ylabel="derivative")
    _legend_above(drawn)
    return drawn


def _legend_above(drawn: "Figure") -> None:
    """One legend at the top right of the figure, where no bar is."""
    handles, names = drawn.axes[0].get_legend_handles_labels()
    drawn.legend(handles, names, frameon=False, ncols=2, loc="outside upper right")
