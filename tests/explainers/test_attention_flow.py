"""Attention flow against the maximum flow by Edmonds & Karp, and by networkx for units of several tokens."""

from collections import deque

import networkx
import numpy as np
import pytest

import heedful
from tests.families import build, texts_for
from tests.parity.plain_pass import agree, blocks, ours, passed


def maximum_flow(capacity, source, sink):
    """Edmonds & Karp, 1972: shortest ways with room left, until there is none."""
    room, flow = {node: dict(others) for node, others in capacity.items()}, 0.0
    while True:
        came, waiting = {source: None}, deque([source])
        while waiting and sink not in came:
            node = waiting.popleft()
            for other, width in room.get(node, {}).items():
                if width > 1e-13 and other not in came:
                    came[other] = node
                    waiting.append(other)
        if sink not in came:
            return flow
        way = [sink]
        while came[way[-1]] is not None:
            way.append(came[way[-1]])
        steps = list(zip(way[1:], way[:-1], strict=True))
        narrow = min(room[a][b] for a, b in steps)
        for a, b in steps:
            room[a][b] -= narrow
            back = room.setdefault(b, {})
            back[a] = back.get(a, 0.0) + narrow
        flow += narrow


def pipes_of(run):
    """Capacities by node and next node; where a layer does not act they are 1, as no more than 1 leaves the top."""
    layers = list(blocks(run))
    pipes = {"top": {(len(layers), s): float(r) for s, r in enumerate(run.readout) if r}}
    for depth, M in enumerate(layers):
        for s, t in np.argwhere(M > 0).tolist():
            pipes.setdefault((depth + 1, s), {})[(depth, t)] = float(M[s, t])
    return pipes


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bart", "torch"])
def test_attention_flow_is_the_maximum_flow_to_each_token(family):
    number = 2 if family == "bart" else 0
    run = passed(family, number)
    n_own, n_source = run.sizes()
    pipes = pipes_of(run)
    row = np.array([maximum_flow(pipes, "top", (0, token)) for token in range(n_own + n_source)])
    agree(ours(family, "attention-flow", number), row, n_source)


@pytest.mark.parametrize("unit", ["word", "type", "sentence"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
def test_the_flow_to_a_unit_is_one_flow_to_all_of_its_tokens(family, unit):
    run = passed(family, 1)
    n_own, n_source = run.sizes()
    document = run.document
    graph = networkx.DiGraph()
    for node, others in pipes_of(run).items():
        for other, width in others.items():
            graph.add_edge(node, other, capacity=width)
    explanation = heedful.explain(build(family), texts_for(family)[1], "attention-flow", unit=unit)
    # A document has the source's tokens first, the graph the tokens of the tower that is read out.
    for number, score in enumerate(explanation.scores):
        together = graph.copy()
        for token in np.flatnonzero(document.unit_of(unit) == number).tolist():
            # An edge without capacity has no limit.
            together.add_edge((0, token + n_own if token < n_source else token - n_source), "sink")
        assert score == pytest.approx(networkx.maximum_flow_value(together, "top", "sink"), abs=1e-6)
        assert score <= 1 + 1e-6
