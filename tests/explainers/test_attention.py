import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from tests.families import build, texts_for
from tests.parity.plain_pass import agree, ours, passed
from tests.straightforward import Straightforward

TEXT = "good film , good story"


def rows(model, text):
    plain = Straightforward(model)
    e = plain.embedding(torch.tensor([plain.ids(text)])) + plain.positions
    scores = torch.stack([head.query(e[0, 0]) @ head.key(e[0]).T / 6**0.5 for head in plain.heads])
    return torch.softmax(scores, dim=-1).detach().numpy()


def test_mean_and_max_over_heads(tiny):
    alpha = rows(tiny, TEXT)
    assert np.allclose(heedful.explain(tiny, TEXT, "attention-mean").scores, alpha.mean(axis=0)[1:6], atol=1e-12)
    assert np.allclose(heedful.explain(tiny, TEXT, "attention-max").scores, alpha.max(axis=0)[1:6], atol=1e-12)


def test_words_cls_and_padding_share_all_attention(tiny):
    explanation = heedful.explain(tiny, TEXT, "attention-mean")
    assert explanation.scores.sum() + explanation.facts["[cls]"] + explanation.facts["padding"] == pytest.approx(1)


READ = {
    "from-cls": lambda A, i: A[i],
    "to-cls": lambda A, i: A[:, i],
    "column-mean": lambda A, i: [sum(column) / len(A) for column in A.T],
    "column-max": lambda A, i: [max(column) for column in A.T],
    "row-mean": lambda A, i: [sum(row) / len(A) for row in A],
    "row-max": lambda A, i: [max(row) for row in A],
}
COMBINE = {
    "mean": lambda parts: sum(parts) / len(parts),
    "sum": sum,
    "max": lambda parts: np.max(parts, axis=0),
    "product": lambda parts: np.multiply.reduce(parts),
    "last": lambda parts: parts[-1],
}


def over(parts, how):
    return np.asarray(parts[how] if isinstance(how, int) else COMBINE[how](parts))


@pytest.mark.parametrize("rows", READ)
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_every_combination_of_operators_is_that_of_the_maps_written_out(family, rows):
    run = passed(family, 1)
    readout = int(run.readout.argmax())
    for heads, layers in zip(
        ("mean", "sum", "max", "product", 2, "mean"), ("max", "product", 1, "mean", "last", "sum"), strict=True
    ):
        if layers == "product":
            product = np.eye(len(run.document.ids))
            for maps in run.looks:
                product = over(maps, heads) @ product
            row = np.asarray(READ[rows](product, readout))
        else:
            row = over([over([np.asarray(READ[rows](A, readout)) for A in maps], heads) for maps in run.looks], layers)
        agree(ours(family, "attention", 1, heads=heads, layers=layers, rows=rows), row)


@pytest.mark.parametrize("rows", READ)
def test_padding_beside_a_longer_text_changes_nothing(rows):
    for layers in ("max", "product"):
        settings = {"rows": rows, "layers": layers, "heads": "max"}
        together = heedful.explain(build("bert"), texts_for("bert"), "attention", **settings)
        for text, explanation in zip(texts_for("bert"), together, strict=True):
            alone = heedful.explain(build("bert"), text, "attention", **settings)
            assert np.abs(explanation.scores - alone.scores).max() < 1e-12


def test_in_the_papers_model_means_and_maxima_are_over_the_words_and_cls_alone(tiny):
    maps = tiny.maps(tiny.encode(TEXT))[0]
    assert maps.shape[2] > 6
    for rows, read in READ.items():
        if rows != "from-cls":
            row = np.mean([read(A[:, :6], 0) for A in maps], axis=0)
            explanation = heedful.explain(tiny, TEXT, "attention", rows=rows)
            assert np.allclose(explanation.scores, row[1:6], atol=1e-12)
            assert explanation.facts["forwards"] == 2


@pytest.mark.parametrize("name", ["mean", "max", "sum", "last"])
def test_the_named_methods_are_cases_of_the_operators(name):
    settings = {"layers": "last"} if name == "last" else {"heads": name, "layers": name}
    one, other = (ours("bert", method, **more) for method, more in ((f"attention-{name}", {}), ("attention", settings)))
    assert (one.scores == other.scores).all()


def test_operators_that_a_model_has_no_maps_for_are_refused():
    with pytest.raises(BadInput, match="There is no head 9; the model has 4"):
        ours("bert", "attention", heads=9, rows="to-cls")
    for refused in ({"rows": "to-cls"}, {"layers": "product"}):
        with pytest.raises(Unsupported, match="between the tokens of one text"):
            ours("bart", "attention", **refused)
    bag = heedful.Bag([1.0, 2.0], [1.0, -1.0])
    with pytest.raises(Unsupported, match="no whole maps"):
        heedful.explain(bag, bag.text, "attention", rows="column-max")
