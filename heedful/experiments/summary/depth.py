"""The summary's first check: one to six layers with skip connections and norms."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Claim, Numbers
from heedful.experiments.variant_tests import variant_claims, variant_figure
from heedful.experiments.variants import DEEP, ONE_LAYER, TINY, Variant, measure_variants, review_texts, sized_config
from heedful.experiments.workspace import Workspace
from heedful.models.transformer import TransformerConfig

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_DEPTHS = (1, 2, 4, 6)


@final
@dataclass(frozen=True)
class Depth(Experiment):
    """Whether the single-layer results hold for 1 to 6 layers with residual and norm.

    They hold if α-avg of the first layer follows G-l1 and G×I is nearer to LIME than α is (`variant_tests.py`). The
    only non-linearities are the softmax and the norms, so that depth is tested alone; the plain layer of the paper is
    included for comparison, trained at a higher rate. In the quick form the models are tiny and the texts synthetic.
    """

    name: ClassVar[str] = "depth"
    part: ClassVar[ExperimentPart] = "summary"
    title: ClassVar[str] = "Do the single-layer results hold in deeper models?"
    source: ClassVar[str] = "summary, next check 1; paper, Section 4.2: it may not hold for deeper models"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables models, documents."""
        texts = review_texts(workspace)
        recipes = (TINY, TINY) if workspace.quick else (ONE_LAYER, DEEP)
        plain = Variant("plain layer", sized_config(workspace, TransformerConfig()), texts, recipes[0])
        deep = [
            Variant(
                f"{depth} layer{'s' * (depth > 1)}",
                sized_config(workspace, TransformerConfig(depth=depth, skip=True, norm=True)),
                texts,
                recipes[1],
            )
            for depth in _DEPTHS
        ]
        return measure_variants(workspace, [plain, *deep])

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        return variant_claims(numbers, "do the single-layer results hold with residuals, norms and more layers?")

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure depth."""
        return {"depth": variant_figure(numbers)}
