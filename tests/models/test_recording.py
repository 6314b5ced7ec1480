import numpy as np
import torch

from heedful.models.recording import portions, read_rows, record
from tests.families import TEXTS, build


def test_a_recording_holds_every_layer_and_the_logits_of_the_model():
    model = build("bert")
    documents = [model.encode(text) for text in TEXTS[:2]]
    recording = record(model, documents)
    assert len(recording.calls) == model.network.config.num_hidden_layers
    assert np.allclose(recording.logits, model.logits(documents), atol=1e-12)
    rows = read_rows(model, documents, recording)
    expected = torch.stack([call.maps()[:, :, 0] for call in recording.calls], dim=1)
    assert torch.allclose(rows, expected, atol=1e-12)


def test_portions_keep_the_order_and_what_a_model_takes_together(monkeypatch):
    model = build("torch")
    documents = [model.encode(text) for text in ("good", "bad", "good film", "a")]
    assert [len(some) for some in portions(model, documents)] == [2, 1, 1]
    monkeypatch.setattr("heedful.models.recording.PASS_MEMORY", 1)
    assert [some[0] for some in portions(model, documents)] == documents
