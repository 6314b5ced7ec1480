import numpy as np
import torch

from tests.families import build, pictures


def test_patches_put_together_are_the_picture_the_network_reads():
    model = build("vit")
    document = model.encode(pictures()[0])
    with torch.no_grad():
        pixels = torch.from_numpy(document.picture.pixels)[None].to(model.network.dtype)
        expected = model.network(pixel_values=pixels).logits
        assert torch.allclose(model.forward(model.embed([document]), [document]), expected, atol=1e-12)
    assert model.probe_forwards == 4
    assert np.allclose(model.readout([document]).sum(dim=1), 1)
