import numpy as np
import pytest
import torch

import heedful
from tests.families import build


@pytest.mark.parametrize("family", ["t5", "bart", "marian"])
def test_logits_are_those_of_the_network_given_both_texts(family):
    model = build(family)
    document = model.encode(heedful.Pair("the film was good .", "a bad"))
    ids, second = torch.from_numpy(document.ids)[None], torch.from_numpy(document.segments) == 1
    with torch.no_grad():
        logits = model.network(input_ids=ids[:, ~second], decoder_input_ids=ids[:, second], use_cache=False).logits
    assert np.allclose(model.logits([document])[0], logits[0, -1].numpy(), atol=1e-9)
    assert model.readout([document]).argmax() == int(second.sum()) - 1
