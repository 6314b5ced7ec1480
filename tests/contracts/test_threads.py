"""Calls from many threads give the bytes of calls one after another, and leave the model as it was."""

import gc
import json
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import heedful
from heedful.errors import HeedfulError
from tests.conftest import tiny_model
from tests.families import build

TEXT = "the film was not good , but the plot was very bright"
METHODS = (
    *("attention-mean", "rollout", "value-norms", "gradient-l2", "gradient-attention", "relevance-attention"),
    *("integrated-gradients", "leave-one-out", "lime", "attention-flow"),
)
FEW = {"lime": {"n_samples": 40}, "integrated-gradients": {"n_steps": 4}}
MODELS = {"single layer": tiny_model, **{name: lambda name=name: build(name) for name in ("bert", "llama", "torch")}}


def state_of(model):
    """Everything of a network that a pass may touch."""
    network, hooks = model.network, torch.nn.modules.module
    config = getattr(network, "config", None)
    return {
        "weights": [tensor.clone() for tensor in network.state_dict().values()],
        "gradients": [(weight.requires_grad, weight.grad is None) for weight in network.parameters()],
        "modules": [
            (module.training, len(module._forward_hooks), len(module._forward_pre_hooks), "forward" in vars(module))
            for module in network.modules()
        ],
        "config": [getattr(config, name, None) for name in ("_attn_implementation", "pad_token_id")],
        "global": [len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks)],
        "fast path": torch.backends.mha.get_fastpath_enabled(),
    }


def same(one, two):
    weights = zip(one.pop("weights"), two.pop("weights"), strict=True)
    return all(torch.equal(a, b) for a, b in weights) and one == two


def explained(model, method):
    try:
        return json.dumps(heedful.explain(model, TEXT, method, **FEW.get(method, {})).as_dict())
    except HeedfulError as error:
        return str(error)


@pytest.fixture
def many_switches():
    """Threads take turns a hundred times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 100)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_eight_threads_give_the_bytes_of_one(name, many_switches):
    model = MODELS[name]()
    alone, before = {method: explained(model, method) for method in METHODS}, state_of(model)
    orders = [[*METHODS[n:], *METHODS[:n]] for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda order: [explained(model, method) for method in order], orders))
    for order, results in zip(orders, together, strict=True):
        assert results == [alone[method] for method in order]
    assert same(before, state_of(model))


@pytest.mark.slow
def test_compare_trust_and_predictions_may_run_together(many_switches):
    model = build("bert")
    texts = [TEXT, "a very bad story", "good film " * 60]

    def report():
        kept = heedful.trust(model, texts, methods=["lime", "rollout"], metrics=["comprehensiveness"], n_samples=20)
        return json.dumps([[row.values, row.scores] for row in kept.documents])

    jobs = [
        lambda: json.dumps(heedful.compare(model, TEXT, METHODS[:5]).as_dict()),
        report,
        lambda: [model(texts).tolist(), model.maps(model.encode(TEXT)).tolist()],
        lambda: heedful.deaf(model, ["film", "good"])(texts).tolist(),
    ]
    alone = [job() for job in jobs]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda n: jobs[n % 4](), range(16)))
    assert together == alone * 4


@pytest.mark.slow
def test_repeated_calls_keep_no_memory():
    model = build("bert")

    def some():
        for method in ("rollout", "gradient-l2", "leave-one-out"):
            heedful.explain(model, "good film", method)

    for _ in range(3):
        some()
    gc.collect()
    tracemalloc.start()
    for _ in range(4):
        some()
    gc.collect()
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Four calls of three methods each; a kept document or recording would be tens of kilobytes a call.
    assert left < 60_000
