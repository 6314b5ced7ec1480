import numpy as np
import pytest
import torch

from heedful.errors import BadInput, Unsupported
from heedful.models.target_gradient import gradient_at, target_values
from heedful.target import Target


@pytest.mark.parametrize("returns", ["logits", "independent-logits", "probabilities"])
@pytest.mark.parametrize("scale", ["logit", "log-probability", "probability"])
@pytest.mark.parametrize("against", [None, 2])
def test_targets_are_those_of_arrays(scale, against, returns):
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    logits = logits.softmax(dim=1) if returns == "probabilities" else logits
    scale = "probability" if (scale, returns) == ("logit", "probabilities") else scale
    targets = [Target(index, "class", against, scale, returns) for index in (0, 1, 0, 1)]
    expected = [target.of(row[None])[0] for target, row in zip(targets, logits.numpy(), strict=True)]
    assert np.allclose(target_values(targets, logits), expected, rtol=1e-12)


def test_the_log_probability_of_a_single_logit_is_that_of_a_sigmoid():
    values = target_values([Target(0, "class", None, "log-probability")], torch.tensor([[0.3]], dtype=torch.float64))
    assert np.allclose(values, np.log(1 / (1 + np.exp(-0.3))), rtol=1e-12)


def test_the_gradient_is_that_of_each_document():
    e = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)
    assert torch.allclose(gradient_at((e**3).sum(dim=(1, 2)), e), 3 * e.detach() ** 2)


def test_a_gradient_that_does_not_exist_is_refused():
    e = torch.zeros(1, 2, 3, requires_grad=True)
    with pytest.raises(Unsupported, match="No gradient flows"):
        gradient_at(e.detach().sum(dim=(1, 2)), e)
    with pytest.raises(BadInput, match="not a finite number"):
        gradient_at(e.sqrt().sum(dim=(1, 2)), e)
