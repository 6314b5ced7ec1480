"""Shapley values against the package `shap`, which asks every set of a short text, and captum's sampling."""

import warnings

import numpy as np
import pytest
import torch

import heedful
from heedful.target import Target

TEXT = "good film was very dull but bright"


@pytest.fixture(scope="module")
def asked(tiny):
    document, target = tiny.encode(TEXT), Target(1, "positive")

    def f(masks):
        keep = np.concatenate([np.ones((len(masks), 1)), np.asarray(masks)], axis=1) > 0.5
        return tiny.masked(document, target, keep, "replace")

    return f


def test_the_kernel_explainer_finds_the_exact_values(tiny, asked):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import shap

        explainer = shap.KernelExplainer(asked, np.zeros((1, 7)))
        theirs = explainer.shap_values(np.ones((1, 7)), nsamples=1000, l1_reg=False, silent=True)[0]
    for method in ("shapley-exact", "shapley-sampled"):
        assert np.allclose(heedful.explain(tiny, TEXT, method, target=1).scores, theirs, atol=1e-8)


@pytest.mark.slow
def test_captum_s_kernel_shap_scatters_around_the_exact_values(tiny, asked):
    from captum.attr import KernelShap

    exact = heedful.explain(tiny, TEXT, "shapley-exact", target=1).scores
    runs = []
    for seed in range(15):
        torch.manual_seed(seed)
        explainer = KernelShap(lambda masks: torch.from_numpy(asked(masks.numpy())))
        result = explainer.attribute(torch.ones(1, 7), torch.zeros(1, 7), n_samples=400, perturbations_per_eval=400)
        runs.append(result[0].numpy())
    error = np.std(runs, axis=0, ddof=1) / 15**0.5
    assert (np.abs(np.mean(runs, axis=0) - exact) < 4.5 * error + 0.02 * np.abs(exact).max()).all()
