"""Maximum flow through the attention graph."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float

from heedful.document.note import Note
from heedful.errors import BadInput
from heedful.explainers import Explainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.attention_hook import Kind

_MOST = 256
_WHOLE = 2**30


@final
@dataclass(frozen=True)
class AttentionFlow(Explainer):
    """Attention flow: maximum flow to each token through the layers' attention.

    The layers are a flow network with capacities ½ A + ½ I (`residual` is the weight of I). Each token's score is the
    maximum flow from the read-out position to it alone. Capacities are rounded to multiples of 2⁻³⁰.

    Reference: Abnar & Zuidema, 2020, arXiv:2005.00928, Section 3; a token's flow is a Shapley value of a game between
    the tokens of a layer (Ethayarajh & Jurafsky, 2021, arXiv:2105.14652).
    """

    name: ClassVar[str] = "attention-flow"
    needs: ClassVar[frozenset[Offer]] = frozenset({"layers"})
    signed: ClassVar[bool] = False
    slow: ClassVar[bool] = True

    residual: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.residual < 1:
            raise BadInput(f"{self.name} needs a residual of at least 0 and below 1; {self.residual:g} was given.")

    @torch.no_grad()
    def explain_batch(self, question: Question) -> list[Explanation]:
        model, documents, calls = question.recordable, question.documents, question.recording.calls
        longest = max(call.k.shape[2] for call in calls)
        if longest > _MOST:
            raise BadInput(f"takes at most {_MOST} tokens; the text has {longest:,}. Shorten it.", self.name)
        readout = model.readout(documents)
        n_sources = model.n_sources(documents)
        mixed = [call.maps().mean(dim=1).double().cpu().numpy() for call in calls]
        own = np.zeros((len(documents), readout.shape[1]))
        source = np.zeros((len(documents), n_sources))
        for index, document in enumerate(documents):
            layers: list[tuple[Kind, np.ndarray]] = []
            for call, maps in zip(calls, mixed, strict=True):
                layers.append((call.kind, maps[index]))
            n_own = len(document.ids) if not n_sources else readout.shape[1]
            own[index], source[index] = _flows(layers, readout[index].cpu().numpy(), self.residual, n_own, n_sources)
        rows = model.placed(
            documents, torch.from_numpy(own).to(readout), torch.from_numpy(source).to(readout) if n_sources else None
        )
        explanations = self.from_tokens(question, rows.cpu().numpy(), {"forwards": 1})
        return [self._noted(explanation) for explanation in explanations]

    def _noted(self, explanation: Explanation) -> Explanation:
        """Adds a note if more than half of the units have the largest possible flow."""
        full = int((explanation.scores > 1 - 1e-6).sum())
        if full <= len(explanation.scores) / 2:
            return explanation
        share = f"{full} of {len(explanation.scores)}"
        return explanation.noted(
            (Note(f"{share} units have the largest possible flow and are not ranked.", "uninformative"),)
        )


def _flows(
    layers: list[tuple[Kind, Float[np.ndarray, "_ _"]]],
    readout: Float[np.ndarray, "_"],
    stays: float,
    n_own: int,
    n_sources: int,
) -> tuple[Float[np.ndarray, "_"], Float[np.ndarray, "_"]]:
    """Maximum flows to the first n_own inputs of the tower that is read out, and to its source's."""
    # Imported here: scipy.sparse would slow every start of the package.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    top, width = 0, len(readout)
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
    starts, ends, sizes = (np.concatenate(parts) for parts in zip(*edges, strict=True))
    whole = np.round(sizes * _WHOLE).astype(np.int64)
    # Edges between the same two nodes, attention to oneself and the residual, are added.
    network = csr_array((whole, (starts, ends)), shape=(n_nodes, n_nodes)).astype(np.int32)
    flow = {int(node): maximum_flow(network, top, int(node)).flow_value / _WHOLE for node in (*own[:n_own], *source)}
    return np.array([flow.get(int(node), 0.0) for node in own]), np.array([flow[int(node)] for node in source])


def _edges(
    above: np.ndarray, below: np.ndarray, maps: Float[np.ndarray, "query key"], goes: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The edges of a layer; if only some queries are computed, the edges start at these."""
    rows, columns = np.nonzero(maps)
    return above[rows], below[columns], goes * maps[rows, columns]
