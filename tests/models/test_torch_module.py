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
