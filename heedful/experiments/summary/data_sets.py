"""The summary's second check: the single layer on reviews, phrases, news, pairs and questions."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, final

from heedful.datasets.ag_news import AgNews
from heedful.datasets.esnli import Esnli
from heedful.datasets.imdb import Imdb
from heedful.datasets.questions import Questions
from heedful.datasets.sst2 import Sst2
from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Claim, Numbers
from heedful.experiments.classifiers import ClassifierRecipe
from heedful.experiments.training_texts import (
    TrainingTexts,
    dataset_texts,
    synthetic_pairs,
    synthetic_sentiment,
    synthetic_topics,
)
from heedful.experiments.variant_tests import variant_claims, variant_figure
from heedful.experiments.variants import ONE_LAYER, TINY, Variant, measure_variants, sized_config
from heedful.experiments.workspace import Workspace
from heedful.models.training_loop import Schedule
from heedful.models.transformer import TransformerConfig

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_SHORT = ClassifierRecipe(Schedule(n_epochs=6, batch_size=64, learning_rate=3e-3))
_PHRASES = ClassifierRecipe(Schedule(n_epochs=2, batch_size=128, learning_rate=3e-3))


@final
@dataclass(frozen=True)
class DataSets(Experiment):
    """Whether the single-layer results hold on IMDB, SST-2, AG News, NLI and QA.

    They hold if α-avg follows G-l1 and G×I is nearer to LIME than α is (`variant_tests.py`); the logit of the predicted
    class is explained, and LIME is exact. SST-2 is evaluated on its validation split, since GLUE does not publish test
    labels; of AG News a folder may contain part of the training split. NLI is e-SNLI, trained on its validation split
    (9,842 pairs) and evaluated on its test split; a pair is read as one text, premise, `=>`, hypothesis. A single
    pooling layer cannot compare the two, so it mostly learns which words occur with which label. Question answering is
    the data set `questions`, drawn stories as in bAbI's first task, a story read before its question in one text; for
    the same reason the layer can only guess among the places of the story. In the quick form models are tiny and all
    texts synthetic.
    """

    name: ClassVar[str] = "data-sets"
    part: ClassVar[ExperimentPart] = "summary"
    title: ClassVar[str] = "Do the single-layer results hold on other data?"
    source: ClassVar[str] = "summary, next check 2"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables models, documents."""
        return measure_variants(workspace, _synthetic(workspace) if workspace.quick else _real(workspace))

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        return variant_claims(numbers, "do the single-layer results hold on other data sets?")

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure data-sets."""
        return {"data-sets": variant_figure(numbers)}


def _real(workspace: Workspace) -> list[Variant]:
    sources = (
        ("IMDB", dataset_texts(Imdb()), 256, ONE_LAYER),
        ("SST-2", dataset_texts(Sst2(), test="validation"), 64, _PHRASES),
        ("AG News", dataset_texts(AgNews()), 96, _SHORT),
        ("NLI", dataset_texts(Esnli(), train="validation"), 64, _SHORT),
        ("QA", dataset_texts(Questions()), 64, _SHORT),
    )
    return [
        Variant(name, _config(workspace, len(texts.classes), T_max), texts, recipe)
        for name, texts, T_max, recipe in sources
    ]


def _synthetic(workspace: Workspace) -> list[Variant]:
    asked = dataset_texts(Questions(most=2, text_seed=workspace.seed))
    sources = (
        ("synthetic reviews", synthetic_sentiment(500, 200, workspace.seed)),
        ("synthetic topics", synthetic_topics(500, 200, workspace.seed)),
        ("synthetic pairs", synthetic_pairs(500, 200, workspace.seed)),
    )
    few = TrainingTexts(
        "questions", Questions.classes, *(part[:n] for part, n in ((asked.train, 500), (asked.test, 200)))
    )
    sources = (*sources, ("synthetic questions", few))
    return [Variant(name, _config(workspace, len(texts.classes), 64), texts, TINY) for name, texts in sources]


def _config(workspace: Workspace, n_classes: int, T_max: int) -> TransformerConfig:
    return replace(sized_config(workspace, TransformerConfig(n_classes=n_classes)), T_max=T_max)
