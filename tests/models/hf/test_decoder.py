import numpy as np
import torch

from tests.families import build


def test_a_common_prefix_is_read_once_and_changes_nothing():
    model = build("gpt2")
    text = "the film was good and very bright . a bad story"
    documents = [model.encode(f"{text} {word}") for word in ("good", "bad", "dull", "plot")]
    together = model.logits(documents)
    with torch.no_grad():
        alone = [model.network(torch.from_numpy(d.ids)[None]).logits[0, -1].numpy() for d in documents]
    assert np.allclose(together, alone, atol=1e-9)


def test_a_text_that_is_the_common_prefix_of_the_others_keeps_its_logits():
    model = build("gpt2")
    text = "the film was good and very bright . a bad story"
    documents = [model.encode(text + more) for more in ("", " good", " good and", " good and dull")]
    with torch.no_grad():
        alone = [model.network(torch.from_numpy(d.ids)[None]).logits[0, -1].numpy() for d in documents]
    assert np.allclose(model.logits(documents), alone, atol=1e-9)
