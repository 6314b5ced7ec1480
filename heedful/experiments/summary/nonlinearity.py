"""The summary's third check: no non-linearity, a ReLU or a GELU after the attention layer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Claim, Numbers
from heedful.experiments.variant_tests import variant_claims, variant_figure
from heedful.experiments.variants import ONE_LAYER, TINY, Variant, measure_variants, review_texts, sized_config
from heedful.experiments.workspace import Workspace
from heedful.models.transformer import TransformerConfig

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure


@final
@dataclass(frozen=True)
class NonLinearity(Experiment):
    """Whether the single-layer results hold with a ReLU or a GELU after attention.

    They hold if α-avg follows G-l1 and G×I is nearer to LIME than α is (`variant_tests.py`). One layer without skip
    connection or norm; its output goes through W_2 bend(W_1 x + b_1) + b_2 with 256 hidden units. Without a
    non-linearity it is the paper's model, and LIME is exact; otherwise LIME is sampled. In the quick form the models
    are tiny and the texts synthetic.
    """

    name: ClassVar[str] = "nonlinearity"
    part: ClassVar[ExperimentPart] = "summary"
    title: ClassVar[str] = "Do the single-layer results hold with a non-linearity?"
    source: ClassVar[str] = "summary, next check 3, and the break condition of its mechanism 2"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables models, documents."""
        texts, recipe = review_texts(workspace), TINY if workspace.quick else ONE_LAYER
        configs = {
            "none": TransformerConfig(),
            "ReLU": TransformerConfig(nonlinearity="relu"),
            "GELU": TransformerConfig(nonlinearity="gelu"),
        }
        return measure_variants(
            workspace,
            [Variant(name, sized_config(workspace, config), texts, recipe) for name, config in configs.items()],
        )

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        return variant_claims(numbers, "do the single-layer results hold with a non-linearity after attention?")

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure nonlinearity."""
        return {"nonlinearity": variant_figure(numbers)}
