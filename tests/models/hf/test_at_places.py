import numpy as np
import pytest
import torch

import heedful
from heedful.errors import Unsupported
from heedful.models.readout import counted_forwards
from tests.families import word_pieces
from tests.tasks import CASES, KINDS, PAIR, TEXT, by_hand, inputs_of, network_of


@pytest.fixture(scope="module")
def answerer():
    return heedful.wrap(network_of("answer", "bert"), word_pieces())


@pytest.fixture(scope="module")
def labeller():
    return heedful.wrap(network_of("label", "bert"), word_pieces())


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request):
    kind, family = request.param
    network = network_of(kind, family)
    return kind, family, network, heedful.wrap(network, word_pieces())


def test_removal_is_that_of_the_network_itself(case):
    kind, family, network, model = case
    _, text, wanted = KINDS[kind]
    explanation = heedful.explain(model, text, "leave-one-out", unit="token", **wanted)
    inputs = inputs_of(kind, family)
    document = model.encode(text) if kind != "label" else model.aimed("a#1", None)[0].encode(text)
    places = np.flatnonzero(document.words >= 0)
    with torch.no_grad():
        whole = by_hand(kind, network, inputs)
        for place, score in zip(places, explanation.scores, strict=True):
            ids = inputs["input_ids"].clone()
            ids[0, place] = word_pieces().mask_token_id
            assert score == pytest.approx(
                (whole - by_hand(kind, network, inputs_of(kind, family, ids))).item(), abs=1e-9
            )
    assert explanation.output == pytest.approx(whole.item(), abs=1e-9)
    assert np.abs(explanation.scores).max() > 1e-3


def test_gradients_are_torch_s(case):
    kind, family, network, model = case
    _, text, wanted = KINDS[kind]
    inputs, kept = inputs_of(kind, family), []
    handle = network.get_input_embeddings().register_forward_hook(
        lambda *given: kept.append(given[2].detach().requires_grad_()) or kept[-1]
    )
    value = by_hand(kind, network, inputs)
    handle.remove()
    (gradient,) = torch.autograd.grad(value, kept[-1])
    explanation = heedful.explain(model, text, "gradient-l2", unit="token", **wanted)
    special = {"[CLS]", "[SEP]", "[MASK]"}
    pieces = word_pieces().convert_ids_to_tokens(inputs["input_ids"][0])
    expected = [row.norm().item() for piece, row in zip(pieces, gradient[0], strict=True) if piece not in special]
    assert np.allclose(explanation.scores, expected, atol=1e-9)


def test_attention_is_that_of_the_tokens_that_are_read(case):
    kind, family, network, model = case
    _, text, wanted = KINDS[kind]
    network.set_attn_implementation("eager")
    inputs = inputs_of(kind, family)
    with torch.no_grad():
        given = {name: x[:, None] for name, x in inputs.items()} if kind == "choice" else inputs
        maps = torch.stack(network(**given, output_attentions=True).attentions).mean(dim=(0, 1, 2))
    network.set_attn_implementation("sdpa")
    rows = {"answer": [7, 8], "label": [7], "masked": [3]}.get(kind, [0])
    explanation = heedful.explain(model, text, "attention-mean", unit="token", **wanted)
    special = {"[CLS]", "[SEP]", "[MASK]"}
    pieces = word_pieces().convert_ids_to_tokens(inputs["input_ids"][0])
    own = [place for place, piece in enumerate(pieces) if piece not in special]
    assert np.allclose(explanation.scores, maps[rows].mean(dim=0)[own], atol=1e-9)


def test_places_are_part_of_the_fingerprint(labeller, answerer):
    for model, names in ((labeller, ("bad=good", "plot=good")), (answerer, ("plot", "bad story"))):
        prints = {model.aimed(name, None)[0].fingerprint for name in names}
        assert len({*prints, model.fingerprint}) == 3
        assert model.aimed(names[0], None)[0].fingerprint in prints


def test_the_token_that_is_read_cannot_be_deleted(labeller, answerer):
    for model, text, target in ((labeller, TEXT, "plot=bad"), (answerer, PAIR, "bad story")):
        with pytest.raises(Unsupported, match="was deleted; use the absence 'replace' or 'mask'"):
            heedful.explain(model, text, "leave-one-out", target=target, absence="delete")


def test_passes_of_wrap_are_counted():
    network = network_of("label", "bert")
    with counted_forwards(network) as passes:
        model = heedful.wrap(network, word_pieces())
    assert model.probe_forwards == len(passes) > 0
