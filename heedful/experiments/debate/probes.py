"""The published tests of attention as an explanation, on the classic models: IMDB, SST and AG News."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, final

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Claim, Numbers
from heedful.experiments.debate.classic_runs import ClassicModel, ProbeRun, measure_runs
from heedful.experiments.debate.probes_claims import debate_claims
from heedful.experiments.debate.probes_figures import draw_accuracies, draw_agreement
from heedful.experiments.workspace import Workspace

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_CORPORA = ("imdb", "sst", "ag-news")
_ONE_MODEL = ("agreement", "permuted", "adversarial", "erasure", "head-removal", "identifiability", "sign-and-value")
_RETRAINED = ("uniform-and-frozen", "trained-adversary", "deceived", "preset-attention")


@final
@dataclass(frozen=True)
class Probes(Experiment):
    """The published tests of attention on the models on which they were made.

    The sources are Jain & Wallace, Wiegreffe & Pinter, Serrano & Smith and Pruthi et al.
    BiLSTM, average and convolution, with tanh and dot-product attention, on IMDB, SST and AG News, by `heedful.probe`.
    Kendall's τ is measured again with word vectors that begin larger, with other seeds, and on a quarter of IMDB.
    Differs from the sources: word vectors trained elsewhere are not available, so they begin at random; of AG News a
    folder may hold a part of the training texts; IMDB reviews of more than 400 words are left out, and models are
    trained for 3 epochs on it (2 where a probe trains them again). The quick form has tiny models and synthetic texts.
    """

    name: ClassVar[str] = "probes"
    part: ClassVar[ExperimentPart] = "debate"
    title: ClassVar[str] = "Is attention explanation? The published tests on the classic models"
    source: ClassVar[str] = "Jain & Wallace, 2019; Wiegreffe & Pinter, 2019; Serrano & Smith, 2019; Pruthi et al., 2020"
    smaller_when_quick: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables models, findings."""
        return measure_runs(workspace, [*(_quick_runs() if workspace.quick else _full_runs())])

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the sources say."""
        return debate_claims(numbers)

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures agreement, accuracies."""
        return {"agreement": draw_agreement(numbers), "accuracies": draw_accuracies(numbers)}


def _quick_runs() -> Iterable[ProbeRun]:
    short = {"n_epochs": 2, "learning_rate": 1e-2}
    for encoder in ("bilstm", "average"):
        yield ProbeRun(ClassicModel("synthetic", encoder), _ONE_MODEL, 12, {"n_ascent": 4, "n_steps": 100})
    yield ProbeRun(ClassicModel("synthetic", "average"), _RETRAINED, 60, {**short, "n_seeds": 2})


def _full_runs() -> Iterable[ProbeRun]:
    """Every run, the longest first, since those that run side by side end with the last of them."""
    for corpus, test in product(_CORPORA, _RETRAINED):
        settings: dict[str, Any] = {} if test == "preset-attention" else {"n_epochs": 2 if corpus == "imdb" else 6}
        if test == "uniform-and-frozen":
            settings["start"] = "scratch"
        yield ProbeRun(ClassicModel(corpus), (test,), 2_000, settings)
    for corpus, encoder, attention in product(_CORPORA, ("bilstm", "convolution", "average"), ("tanh", "dot")):
        yield ProbeRun(ClassicModel(corpus, encoder, attention), _ONE_MODEL, 200)
    others = [(scale, 0) for scale in (0.3, 1.0)] + [(0.1, seed) for seed in (1, 2)]
    for corpus, encoder, (scale, seed) in product(_CORPORA, ("bilstm", "average"), others):
        yield ProbeRun(ClassicModel(corpus, encoder, "tanh", scale, seed), ("agreement",), 200)
    yield ProbeRun(ClassicModel("imdb-quarter"), ("agreement",), 200)
