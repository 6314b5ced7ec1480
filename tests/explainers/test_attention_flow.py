"""Attention flow against the maximum flow by Edmonds & Karp."""

from collections import deque

import numpy as np
import pytest

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


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bart", "torch"])
def test_attention_flow_is_the_maximum_flow_to_each_token(family):
    number = 2 if family == "bart" else 0
    run = passed(family, number)
    n_own, n_source = run.sizes()
    layers = list(blocks(run))
    # Where a layer does not act a pipe is 1 wide, which is no limit: no more than 1 leaves the top.
    pipes = {"top": {(len(layers), s): float(r) for s, r in enumerate(run.readout) if r}}
    for depth, M in enumerate(layers):
        for s, t in np.argwhere(M > 0).tolist():
            pipes.setdefault((depth + 1, s), {})[(depth, t)] = float(M[s, t])
    row = np.array([maximum_flow(pipes, "top", (0, token)) for token in range(n_own + n_source)])
    agree(ours(family, "attention-flow", number), row, n_source)
