import heedful
from heedful.models.readout import counted_forwards
from tests.families import TEXTS, loud, network_of


def test_probes_run_once_in_wrap_and_are_counted():
    network, tokenizer = network_of("bert")
    network = loud(network).double().eval()
    with counted_forwards(network) as passes:
        model = heedful.wrap(network, tokenizer)
    assert model.probe_forwards == len(passes) == 9
    for _ in range(2):
        with counted_forwards(network) as passes:
            explanation = heedful.explain(model, TEXTS[0], "rollout")
        assert explanation.facts["forwards"] == len(passes) == 1
