import torch

from heedful.models.checkpointing import recomputing
from tests.families import TEXTS, build


def test_a_gradient_through_layers_that_run_again_is_the_same():
    model = build("bert")
    document = model.encode(TEXTS[0])
    gradients, n_runs = [], []
    for again in (False, True):
        e = model.embed([document]).detach().requires_grad_()
        layer = model.network.bert.encoder.layer[0]
        handle = layer.attention.register_forward_pre_hook(lambda *_: n_runs.append(None))
        if again:
            with recomputing(model.network):
                model.forward(e, [document])[0, 0].backward()
        else:
            model.forward(e, [document])[0, 0].backward()
        handle.remove()
        gradients.append(e.grad)
    assert torch.allclose(*gradients, atol=1e-12)
    assert len(n_runs) == 3
