import pytest

from heedful.errors import BadInput, Unsupported
from heedful.models.hf.decoder import HfDecoder
from heedful.models.hf.load import load_pretrained, wrap_pretrained
from tests.families import network_of


def test_a_network_is_wrapped_by_the_shape_of_its_task():
    network, tokenizer = network_of("gpt2")
    assert isinstance(wrap_pretrained(network.eval(), tokenizer), HfDecoder)
    with pytest.raises(BadInput, match="tokenizer"):
        wrap_pretrained(network, None)
    with pytest.raises(Unsupported):
        wrap_pretrained(network.transformer.eval(), tokenizer)


def test_a_precision_that_does_not_exist_is_refused():
    with pytest.raises(BadInput, match="float13"):
        load_pretrained("anything", "cpu", "float13")
