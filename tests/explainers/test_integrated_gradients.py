"""Integrated gradients against captum."""

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients

from heedful.document import SPECIAL
from tests.parity.from_embeddings import CLOSE, COMPARED, compared
from tests.parity.plain_pass import agree


@pytest.mark.parametrize("family", COMPARED)
def test_integrated_gradients_are_captum_s(family):
    text, plain, x, target = compared(family)
    theirs, gap = IntegratedGradients(plain).attribute(
        x, torch.zeros_like(x), target=target, n_steps=50, method="gausslegendre", return_convergence_delta=True
    )
    ours = plain.explain(text, "integrated-gradients", n_steps=50)
    agree(ours, plain.tokens(theirs), tolerance=CLOSE)
    assert ours.facts["gap"] == pytest.approx(float(gap), rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_integrated_gradients_from_unknown_words_are_captum_s(family):
    text, plain, x, target = compared(family)
    reader = plain.model.tokenizer
    replacement = reader.unk_token_id if reader.mask_token_id is None else reader.mask_token_id
    emptied = np.where(plain.document.words == SPECIAL, plain.document.ids, replacement)
    theirs = IntegratedGradients(plain).attribute(x, plain.looked_up(emptied), target=target, n_steps=50)
    agree(
        plain.explain(text, "integrated-gradients", n_steps=50, baseline="unknown"),
        plain.tokens(theirs),
        tolerance=CLOSE,
    )
