"""Maximum flow through the attention graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float, Int

from heedful.document import SPECIAL
from heedful.document.note import Note
from heedful.errors import BadInput, Unsupported
from heedful.explainers import Explainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.attention_hook import Kind

_MOST = 256
_WHOLE, _UNLIMITED = 2**30, 2**31 - 1


@final
@dataclass(frozen=True)
class AttentionFlow(Explainer):
    """Attention flow: maximum flow to each unit through the layers' attention.

    The layers are a flow network with capacities ½ A + ½ I (`residual` is the weight of I). Each unit's score is the
    maximum flow from the read-out position to its tokens together, so it is at most 1: one problem for each unit, not
    the sum of its tokens' flows. Capacities are rounded to multiples of 2⁻³⁰.

    Reference: Abnar & Zuidema, 2020, arXiv:2005.00928, Section 3; a token's flow is a Shapley value of a game between
    the tokens of a layer (Ethayarajh & Jurafsky, 2021, arXiv:2105.14652).
    """

    name: ClassVar[str] = "attention-flow"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = frozenset({"layers"})
    signed: ClassVar[bool] = False

    residual: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.residual < 1:
            raise BadInput(f"{self.name} needs a residual of at least 0 and below 1; {self.residual:g} was given.")

    @torch.no_grad()
    def explain_batch(self, question: Question) -> list[Explanation]:
        model, documents, calls = question.recordable, question.documents, question.recording.calls
        if model.co_attends:
            raise Unsupported("is not defined for co-attention; gradient-attention is.", self.name)
        longest = max(call.k.shape[2] for call in calls)
        if longest > _MOST:
            raise BadInput(f"takes at most {_MOST} tokens; the text has {longest:,}. Shorten it.", self.name)
        readout, n_sources = model.readout(documents).cpu().numpy(), model.n_sources(documents)
        mixed = [call.maps().mean(dim=1).double().cpu().numpy() for call in calls]
        explanations = []
        for index in range(len(documents)):
            layers: list[tuple[Kind, np.ndarray]] = [
                (call.kind, maps[index]) for call, maps in zip(calls, mixed, strict=True)
            ]
            flow = Flow(layers, readout[index], self.residual, n_sources)
            own, source = (torch.from_numpy(nodes).double().expand(len(documents), -1) for nodes in flow.inputs)
            nodes = model.placed(documents, own, source if n_sources else None)[index].long().numpy()
            explanations.append(self._noted(self._explained(question, index, flow, nodes)))
        return explanations

    def _explained(self, question: Question, index: int, flow: "Flow", nodes: Int[np.ndarray, "token"]) -> Explanation:
        """The flow to each unit's tokens; those of special tokens, by name, are facts."""
        document = question.documents[index]
        nodes, unit_of, pieces = nodes[: len(document.ids)], document.unit_of(self.unit), np.array(document.pieces)
        scores = np.array([flow.to(nodes[unit_of == unit]) for unit in range(document.n_units(self.unit))])
        special = document.words == SPECIAL
        others = {str(piece): flow.to(nodes[special & (pieces == piece)]) for piece in dict.fromkeys(pieces[special])}
        return self.explanation(question, index, scores, np.zeros_like(scores), {**others, "forwards": 1})

    def _noted(self, explanation: Explanation) -> Explanation:
        """Adds a note if more than half of the units have the largest possible flow."""
        full = int((explanation.scores > 1 - 1e-6).sum())
        if full <= len(explanation.scores) / 2:
            return explanation
        share = f"{full} of {len(explanation.scores)}"
        return explanation.noted(
            (Note(f"{share} units have the largest possible flow and are not ranked.", "uninformative"),)
        )


@final
class Flow:
    """The flow network of one document: `inputs` are the nodes of the tower that is read out, and of its source."""

    def __init__(
        self,
        layers: Sequence[tuple[Kind, Float[np.ndarray, "_ _"]]],
        readout: Float[np.ndarray, "_"],
        stays: float,
        n_sources: int,
    ) -> None:
        # Imported here: scipy.sparse would slow every start of the package.
        from scipy.sparse import csr_array

        width = len(readout)
        own = np.arange(1, 1 + width)
        n_nodes = 1 + width
        source = np.arange(n_nodes, n_nodes + n_sources)
        n_nodes += n_sources
        edges: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = [(np.zeros_like(own), own, readout)]
        for kind, maps in reversed(layers):
            if kind == "source":
                below = np.arange(n_nodes, n_nodes + n_sources)
                edges += [_edges(source, below, maps, 1 - stays), (source, below, np.full(n_sources, stays))]
                source, n_nodes = below, n_nodes + n_sources
                continue
            below = np.arange(n_nodes, n_nodes + width)
            seen = below if kind == "self" else source
            edges += [_edges(own, seen, maps, 1 - stays), (own, below, np.full(width, stays))]
            own, n_nodes = below, n_nodes + width
        self.inputs, self._sink = (own, source), n_nodes
        leaves = np.concatenate(self.inputs)
        edges.append((leaves, np.full_like(leaves, n_nodes), np.ones(len(leaves))))
        starts, ends, sizes = (np.concatenate(parts) for parts in zip(*edges, strict=True))
        whole = np.round(sizes * _WHOLE).astype(np.int64)
        # Edges between the same two nodes, attention to oneself and the residual, are added.
        network: Any = csr_array((whole, (starts, ends)), shape=(n_nodes + 1, n_nodes + 1)).astype(np.int32)
        network.sort_indices()
        self._network: Any = network

    def to(self, nodes: Int[np.ndarray, "_"]) -> float:
        """The maximum flow from the read-out to some inputs together."""
        from scipy.sparse.csgraph import maximum_flow

        network = self._network
        # An input has one edge, to the sink; it is open for the inputs in question alone.
        network.data[network.indptr[np.concatenate(self.inputs)]] = 0
        network.data[network.indptr[nodes]] = _UNLIMITED
        return maximum_flow(network, 0, self._sink).flow_value / _WHOLE


def _edges(
    above: np.ndarray, below: np.ndarray, maps: Float[np.ndarray, "query key"], goes: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The edges of a layer; if only some queries are computed, the edges start at these."""
    rows, columns = np.nonzero(maps)
    return above[rows], below[columns], goes * maps[rows, columns]
