import numpy as np
import pytest
import torch

import heedful
from tests.straightforward import Straightforward

TEXT = "good film , good story"


def rows(model, text):
    plain = Straightforward(model)
    e = plain.embedding(torch.tensor([plain.ids(text)])) + plain.positions
    scores = torch.stack([head.query(e[0, 0]) @ head.key(e[0]).T / 6**0.5 for head in plain.heads])
    return torch.softmax(scores, dim=-1).detach().numpy()


def test_mean_and_max_over_heads(tiny):
    alpha = rows(tiny, TEXT)
    assert np.allclose(heedful.explain(tiny, TEXT, "attention-mean").scores, alpha.mean(axis=0)[1:6], atol=1e-12)
    assert np.allclose(heedful.explain(tiny, TEXT, "attention-max").scores, alpha.max(axis=0)[1:6], atol=1e-12)


def test_words_cls_and_padding_share_all_attention(tiny):
    explanation = heedful.explain(tiny, TEXT, "attention-mean")
    assert explanation.scores.sum() + explanation.facts["[cls]"] + explanation.facts["padding"] == pytest.approx(1)
