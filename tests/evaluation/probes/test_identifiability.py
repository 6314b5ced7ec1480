import numpy as np
import pytest
import torch

from heedful.evaluation.probes.identifiability import Identifiability
from heedful.models.recording import record
from tests.conftest import WORDS
from tests.evaluation.probes.models import inquiry_of, model_of
from tests.models.classic.models import classic

SHORT, LONG = "good film", "the film was not bad , but the plot was dull"


def by_hand(alphas, values):
    """Null spaces by numpy's rank, and effective attention by least squares."""
    spaces, effective = [], []
    for alpha, V in zip(alphas, values, strict=True):
        spaces.append((len(V) - np.linalg.matrix_rank(np.column_stack([V, np.ones(len(V))]))) / len(V))
        kept = V @ np.linalg.lstsq(V, alpha, rcond=None)[0]
        effective.append(np.linalg.norm(kept) / np.linalg.norm(alpha))
    return [float(max(spaces) == 0), np.mean(spaces), np.mean(effective)]


def heads_of(model, document):
    """Attention and values of every layer and head, over the keys that the read-out can see."""
    alphas, values = [], []
    attention = model.attention([document])[0]
    for layer, call in zip(attention, record(model, [document]).calls, strict=True):
        for head, alpha in enumerate(layer):
            alphas.append(alpha[alpha > 0])
            values.append(call.v[0, head].double().numpy()[alpha > 0])
    return alphas, values


@pytest.mark.parametrize("kind", ["single-layer", "classic", "bert", "llama", "torch"])
def test_the_numbers_are_those_of_numpy(kind):
    model = model_of(kind)
    inquiry = inquiry_of(model, [SHORT, LONG])
    expected = np.mean([by_hand(*heads_of(model, document)) for document in inquiry.documents], axis=0)
    findings = Identifiability().measure(inquiry).findings
    assert [finding.value.value for finding in findings] == pytest.approx(expected, abs=1e-6)


def test_values_of_the_single_layer_are_those_of_its_formula():
    model = model_of("single-layer")
    document, net = model.encode(LONG), model.network
    with torch.no_grad():
        values = torch.einsum("td,hod->hto", model.embed([document])[0], net.W_v) + net.b_v[:, None]
    expected = by_hand(model.attention([document])[0, 0], values.numpy())
    findings = Identifiability().measure(inquiry_of(model, [LONG])).findings
    assert [finding.value.value for finding in findings] == pytest.approx(expected)
    # 16 tokens with padding, five dimensions, and sums of 1.
    assert findings[1].value.value == pytest.approx(1 - 6 / 16)


def test_short_texts_are_identifiable_and_long_ones_are_not():
    model = classic("bilstm")
    short = Identifiability().measure(inquiry_of(model, [f"{word} film ." for word in WORDS[:8]]))
    assert short.answer == "yes"
    assert short.findings[2].value.value == pytest.approx(1)
    long = Identifiability().measure(inquiry_of(model, [f"{LONG} {word}" for word in WORDS[:8]]))
    assert long.answer == "no"
    assert Identifiability().measure(inquiry_of(model, [SHORT, LONG])).answer == "unknown"
    assert Identifiability().measure(inquiry_of(model, ["good"])).findings == ()
