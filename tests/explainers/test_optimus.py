"""Optimus against every aggregation of eager attention maps, written as loops."""

import numpy as np
import pytest

from tests.parity.plain_pass import ours, passed


def aggregations(maps, row):
    """Every aggregation of maps (layer, head, query, key) to one number a key, by its name."""
    readings = {
        "the read-out row": maps[:, :, row],
        "column means": maps.mean(axis=2),
        "column maxima": maps.max(axis=2),
    }
    for reading, values in readings.items():
        heads = {"mean of heads": values.mean(axis=1), "max of heads": values.max(axis=1)}
        heads |= {f"head {head}": values[:, head] for head in range(maps.shape[1])}
        for head, layers in heads.items():
            yield f"{reading}, {head}, mean of layers", layers.mean(axis=0)
            yield f"{reading}, {head}, max of layers", layers.max(axis=0)
            for layer in range(len(layers)):
                yield f"{reading}, {head}, layer {layer}", layers[layer]
    product = np.linalg.multi_dot(maps.mean(axis=1)[::-1])
    yield "the read-out row, mean of heads, product of layers", product[row]
    yield "column means, mean of heads, product of layers", product.mean(axis=0)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_the_chosen_aggregation_ranks_the_largest_drops_first(family, number):
    run = passed(family, number)
    drops = ours(family, "leave-one-out", number).scores
    words = run.document.words >= 0
    faithfulness, scores = {}, {}
    for name, row in aggregations(np.stack(run.looks), int(run.readout.argmax())):
        scores[name] = row[words]
        order = sorted(range(len(drops)), key=lambda unit: -scores[name][unit])
        faithfulness[name] = sum(drops[unit] / rank for rank, unit in enumerate(order, start=1))
    explanation = ours(family, "optimus", number)
    assert explanation.facts["ways"] == len(faithfulness)
    assert explanation.facts["faithfulness"] == pytest.approx(max(faithfulness.values()), rel=1e-9)
    chosen = explanation.notes[0].partition(": ")[2].rstrip(".")
    assert faithfulness[chosen] == pytest.approx(max(faithfulness.values()), rel=1e-9)
    assert np.allclose(explanation.scores, scores[chosen], rtol=1e-6)
