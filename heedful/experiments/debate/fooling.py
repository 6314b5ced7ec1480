"""Fooling LIME and SHAP: a biased classifier that hides its bias on masked texts, and the check that finds it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from heedful.evaluation.off_data import off_data
from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import SHARES, Claim, Mean, Numbers, claim_if, column, mean_of
from heedful.experiments.debate.corpora import CORPORA, QUICK
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.models.black_box import BlackBox
from heedful.models.load import wrap
from heedful.perturb.scaffolded import scaffolded
from heedful.run_folder import write_atomically

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

BIASED, INNOCUOUS = ("anna", "peter"), ("monday", "friday")
METHODS, ABSENCES, MODELS = ("lime", "shapley-sampled"), ("replace", "delete"), ("biased", "scaffolded")
ON_DATA = "leave-one-out"
"""Exchanges each word for words of other texts, whatever the absence of the other methods."""
_LONGEST = 100
_SHOWN = {"lime": "LIME", "shapley-sampled": "Shapley values", ON_DATA: "words exchanged in turn"}


@final
@dataclass(frozen=True)
class Fooling(Experiment):
    """The word that LIME and Shapley values put first if a classifier hides its bias.

    Each text gets a name and a weekday at random places, independent of everything else. The biased classifier reads
    the name alone, the innocuous one the weekday alone; `heedful.scaffolded` joins them.
    Differs from the source: texts in place of tables, reviews of at most 100 words, and words removed in two ways.
    """

    name: ClassVar[str] = "fooling"
    part: ClassVar[ExperimentPart] = "debate"
    title: ClassVar[str] = "Fooling LIME and SHAP: a bias that explanations do not show"
    source: ClassVar[str] = "Slack et al., 2020, arXiv:1911.02508, Figure 2"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables first, check."""
        train, test = _texts(workspace)
        write_atomically(workspace.folder / "texts.txt", "\n".join(train))
        first, check = [], []
        for number, (absence, name) in enumerate(product(ABSENCES, MODELS)):
            model: Any = wrap(_reader(BIASED), classes=["no", "yes"])
            if name == "scaffolded":
                both = _reader(BIASED), _reader(INNOCUOUS)
                model = scaffolded(*both, train, absence, classes=["no", "yes"], seed=workspace.seed)
            words = workspace.step(f"first-{absence}-{name}", partial(_first, workspace, model, absence, test))
            treated = workspace.step(f"check-{absence}-{name}", partial(_treated, workspace, model, absence, test))
            for method, row in words.items():
                cells = {"absence": absence, "model": name, "method": method}
                first += [{**cells, "biased": w in BIASED, "innocuous": w in INNOCUOUS} for w in row]
            for what, ends in treated.items():
                three = dict(zip(("value", "low", "high"), ends, strict=True))
                check.append({"absence": absence, "model": name, "what": what, **three})
            workspace.progress(number + 1, len(ABSENCES) * len(MODELS))
        return {"first": first, "check": check}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        claims = []
        for absence, method in product(ABSENCES, METHODS):
            plain, hidden = (_share(numbers, absence, model, method, "biased") for model in MODELS)
            foil = _share(numbers, absence, "scaffolded", method, "innocuous")
            ours = f"{plain.value:.0%} for the biased classifier, {hidden.value:.0%} for the scaffolded one"
            why = f"There the innocuous word is first in {foil.value:.0%} of texts."
            what = f"{method}, {absence}: texts in which the biased word is first"
            hides = hidden.value < plain.value / 2
            claims.append(claim_if(hides, what, "nearly all, then few or none", ours, why, f"Most stays seen. {why}"))
        for absence in ABSENCES:
            seen = {model: _ends(numbers, absence, model, "difference") for model in MODELS}
            ours = "; ".join(f"{model} {v:+.2f} [{low:+.2f}, {high:+.2f}]" for model, (v, low, high) in seen.items())
            seen_again = _share(numbers, absence, "scaffolded", ON_DATA, "biased")
            finds = seen["scaffolded"][1] > 0 and not seen["biased"][1] > 0
            why = f"The check {'finds' if finds else 'does not find'} the scaffold, by predictions that change"
            why += " more often without some words than with other words in their places."
            why += f" With each word exchanged in turn, the biased word is first in {seen_again.value:.0%} of texts."
            claims.append(Claim(f"{absence}: difference of changed predictions (off_data)", "", ours, "new", why))
        return claims

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure first."""
        drawn = figure(7.0, 4.2)
        axes = quiet(drawn.add_subplot())
        rows = list(product(ABSENCES, (*METHODS, ON_DATA), MODELS))
        for place, (absence, method, model) in enumerate(rows):
            left = 0.0
            for kind, colour in (("biased", COLOURS[1]), ("innocuous", COLOURS[0])):
                share = _share(numbers, absence, model, method, kind).value
                axes.barh(place, share, left=left, color=colour, label=kind if place == 0 else None)
                left += share
        axes.set_yticks(
            range(len(rows)), [f"{model} ({absence}): {_SHOWN[method]}" for absence, method, model in rows], size=8
        )
        axes.set(xlabel="share of texts in which the word is first", xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5))
        drawn.legend(frameon=False, ncols=2, loc="outside upper center")
        return {"first": drawn}


def _texts(workspace: Workspace) -> tuple[list[str], list[str]]:
    """Texts with a name and a weekday, to fit the scaffold and to explain."""
    corpus = (QUICK["synthetic"] if workspace.quick else CORPORA["imdb"]).dataset
    rng, drawn = np.random.default_rng(workspace.seed), []
    for split, n in zip(("train", "test"), (200, 30) if workspace.quick else (4_000, 500), strict=True):
        texts = [e.text for e in corpus.examples(split) if len(e.text.split()) <= _LONGEST]
        drawn.append([_marked(texts[i], rng) for i in rng.permutation(len(texts))[:n]])
    return drawn[0], drawn[1]


def _first(workspace: Workspace, model: BlackBox, absence: str, texts: Sequence[str]) -> dict[str, list[str]]:
    """The word of largest score in a fifth of the texts, by each method."""
    (n, n_draws), seed = ((100, 3) if workspace.quick else (500, 10)), workspace.seed
    settings = {name: {"n_samples": n, "seed": seed, "absence": absence} for name in METHODS}
    settings[ON_DATA] = {"absence": f"marginal:{n_draws}:{seed}:{workspace.folder / 'texts.txt'}"}
    words: dict[str, list[str]] = {}
    for method, own in settings.items():
        explained = [explain(model, text, method, target="yes", **own) for text in texts[: len(texts) // 5]]
        words[method] = [e.units[int(np.argmax(np.abs(e.scores)))] for e in explained]
    return words


def _treated(
    workspace: Workspace, model: BlackBox, absence: str, texts: Sequence[str]
) -> dict[str, list[float | None]]:
    """The numbers of the check."""
    row = off_data(model, texts, absence, n=len(texts), seed=workspace.seed).rows[0]
    return {what: getattr(row, what).plain() for what in ("separation", "changed", "exchanged", "difference")}


def _marked(text: str, rng: np.random.Generator) -> str:
    """The text with a name and a weekday at random places."""
    words = text.split()
    for pair in (BIASED, INNOCUOUS):
        words.insert(int(rng.integers(len(words) + 1)), pair[int(rng.integers(2))])
    return " ".join(words)


def _reader(pair: tuple[str, str]) -> Callable[[Sequence[str]], np.ndarray]:
    """A classifier that reads which of two words is in a text, and nothing else."""

    def read(texts: Sequence[str]) -> np.ndarray:
        words = [text.split() for text in texts]
        p = np.array([0.5 + 0.4 * ((pair[0] in row) - (pair[1] in row)) for row in words])
        return np.column_stack([1 - p, p])

    return read


def _share(numbers: Numbers, absence: str, model: str, method: str, kind: str) -> Mean:
    return mean_of(column(numbers["first"], kind, absence=absence, model=model, method=method), SHARES)


def _ends(numbers: Numbers, absence: str, model: str, what: str) -> tuple[float, float, float]:
    where = {"absence": absence, "model": model, "what": what}
    value, low, high = (column(numbers["check"], name, **where)[0] for name in ("value", "low", "high"))
    return value, low, high
