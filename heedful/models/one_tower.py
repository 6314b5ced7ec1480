"""Models whose tokens all enter one stack of layers."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from heedful.document import Document
from heedful.models.layered import LayeredModel


class OneTower(LayeredModel):
    """A layered model without a source beside it: its inputs are the documents' tokens as they stand."""

    def placed(
        self,
        documents: Sequence[Document],  # noqa: ARG002
        own: Float[Tensor, "batch _"],
        source: Float[Tensor, "batch _"] | None,  # noqa: ARG002
    ) -> Float[Tensor, "batch token"]:
        return own

    def n_sources(self, documents: Sequence[Document]) -> int:  # noqa: ARG002
        return 0
