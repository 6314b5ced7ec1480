import pytest
import torch
import transformers

from heedful.errors import Unsupported
from heedful.models.attention_hook import projection
from heedful.models.hf.hook import listening
from tests.families import LABELS, SMALL, TEXTS, build, hf_config


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


def test_a_pass_that_stops_early_does_not_hide_the_projections_of_later_layers():
    network = transformers.BertForSequenceClassification(hf_config("bert", vocab_size=9, **SMALL, **LABELS)).eval()
    ids, calls = torch.tensor([[1, 2, 3]]), []

    def stop(call):
        raise ZeroDivisionError

    def note(call):
        calls.append(call)
        return call.output()

    with torch.no_grad(), listening(network, stop), pytest.raises(ZeroDivisionError):
        network(ids)
    with torch.no_grad(), listening(network, note):
        network(ids)
    for call, layer in zip(calls, network.bert.encoder.layer, strict=True):
        weight = layer.attention.output.dense.weight
        assert torch.equal(projection(call).flatten(0, 1), weight.T)
