import pytest
import torch

from heedful.errors import Unsupported
from heedful.models.hf.hook import listening
from tests.families import TEXTS, build


def test_every_layer_passes_by_the_listener_and_a_silent_network_is_refused():
    model = build("bert")
    document, modules = model.encode(TEXTS[0]), []

    def note(call):
        modules.append(call.module)
        return call.output()

    with torch.no_grad(), listening(model.network, note):
        model.forward(model.embed([document]), [document])
    assert len(set(modules)) == model.network.config.num_hidden_layers
    with pytest.raises(Unsupported, match="cannot be recorded"), listening(model.network, note):
        pass
