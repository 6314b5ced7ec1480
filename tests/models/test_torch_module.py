import numpy as np
import pytest
import torch
from torch import nn

import heedful
from heedful.models.recording import record
from tests.families import Encoder, build, split


def test_attention_written_out_equals_that_of_torch():
    model = build("torch")
    document = model.encode("good film bad plot")
    with torch.no_grad():
        plain = model.network(torch.from_numpy(document.ids)[None])
    recording = record(model, [document])
    assert torch.allclose(recording.logits, plain, atol=1e-12)
    assert len(recording.calls) == 2


def test_a_module_that_fails_on_the_probe_withholds_its_attention_and_says_why():
    class Short(Encoder):
        def forward(self, ids):
            if ids.shape[1] > 4:
                raise IndexError("too long")
            return super().forward(ids)

    model = heedful.wrap(Short().double().eval(), split)
    assert model.offers == {"masks", "gradients"}
    with pytest.raises(heedful.HeedfulError, match="too long"):
        heedful.explain(model, "good film", "rollout")
    assert len(heedful.explain(model, "good film", "gradient-l2").scores) == 2
    assert isinstance(model.network, nn.Module)


def test_a_module_that_ends_in_a_softmax_returns_probabilities():
    class Softmax(Encoder):
        def forward(self, ids):
            return super().forward(ids).softmax(dim=-1)

    torch.manual_seed(0)
    network = Softmax().double().eval()
    model = heedful.wrap(network, split)
    assert model.returns == "probabilities"
    assert heedful.wrap(Encoder().double().eval(), split).returns == "logits"
    assert heedful.wrap(network, split, returns="scores").returns == "scores"
    ids = torch.from_numpy(model.encode("good film").ids)[None]
    with torch.no_grad():
        p = network(ids)[0].numpy()
    for scale, expected in (("logit", p), ("probability", p), ("log-probability", np.log(p))):
        explanation = heedful.explain(model, "good film", "gradient-l2", target=1, scale=scale)
        assert explanation.output == pytest.approx(expected[1], abs=1e-9)
    # ∇ log p = ∇p / p.
    log, plain = (
        heedful.explain(model, "good film", "gradient-l2", target=1, scale=scale).scores
        for scale in ("log-probability", "probability")
    )
    assert np.allclose(log, plain / p[1], rtol=1e-9)
