"""The promises of an explanation, checked on every success; and of a call, which leaves everything as it was."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from benchmarks.reliability.case import Violation
from heedful.document import SPECIAL
from heedful.explanation import Explanation
from heedful.models import Model

EFFICIENT = {"shapley-exact": "empty", "shapley-sampled": "intercept", "hierarchical-shapley": "empty"}
"""Methods whose scores sum to f(text) − f(empty), and the fact that is f(empty)."""
TOLERANCE = 2e-5
"""Relative to the largest number of a sum: models of others compute in single precision."""


def require(holds: bool, promise: str, detail: object = "") -> None:
    """Raises a Violation unless the promise holds."""
    if not holds:
        raise Violation(f"{promise}: {detail}")


def check_explanation(explanation: Explanation, model: Model) -> None:
    """One finite score per unit, half-widths from 0, spans inside the text, and efficiency where it is promised."""
    name, document, scores = explanation.method, explanation.document, explanation.scores
    n_units = document.n_units(explanation.unit)
    require(
        len(scores) == len(explanation.units) == n_units, f"one score per unit ({name})", f"{len(scores)} {n_units}"
    )
    require(bool(np.isfinite(scores).all()), f"finite scores ({name})", scores)
    require(bool(np.isfinite(explanation.output)), f"a finite output ({name})", explanation.output)
    require(explanation.signed or bool((scores >= 0).all()), f"unsigned scores from 0 ({name})", scores.min())
    if explanation.error is not None:
        sane = explanation.error.shape == scores.shape and not np.isnan(explanation.error).any()
        require(sane and bool((explanation.error >= 0).all()), f"half-widths from 0 ({name})", explanation.error)
    n = len(document.text)
    inside = all(0 <= start <= end <= n for start, end in document.spans)
    require(document.picture is not None or inside, "spans inside the text", document.spans)
    if name in EFFICIENT and not explanation.was_stopped:
        check_efficiency(explanation, model)


def check_efficiency(explanation: Explanation, model: Model) -> None:
    """The scores sum to the output less the output of the empty text, which is computed here by itself."""
    settings, document = explanation.settings, explanation.document
    keep = (document.words == SPECIAL)[None]
    empty = float(model.masked(document, explanation.target, keep, str(settings["absence"]))[0])
    gap = explanation.output - empty - explanation.scores.sum()
    scale = max(1.0, abs(empty), abs(explanation.output), float(np.abs(explanation.scores).sum()))
    error = 0.0 if explanation.error is None else float(explanation.error.sum())
    allowed = TOLERANCE * scale + (error if explanation.method == "shapley-exact" else 0.0)
    require(abs(gap) <= allowed, f"efficiency ({explanation.method})", f"gap {gap:.3g} of {scale:.3g}")


def check_again(explanation: Explanation, model: Model) -> None:
    """The output is that of the model, and what JSON holds of the explanation is read back without a change."""
    output = float(explanation.target.of(model.logits([explanation.document]))[0])
    close = abs(output - explanation.output) <= TOLERANCE * max(1.0, abs(output))
    require(close, f"the output of the model ({explanation.method})", f"{explanation.output} {output}")
    written = as_bytes(explanation)
    again = Explanation.from_dict(json.loads(written))
    require(as_bytes(again) == written, f"read back as written ({explanation.method})")


def as_bytes(result: Any) -> str:
    """Everything but the time it took, as text; not a number is refused."""
    if isinstance(result, list):
        return "\n".join(map(as_bytes, result))
    content = result if isinstance(result, dict) else result.as_dict()
    return json.dumps(content, allow_nan=not isinstance(result, Explanation), default=str)


@contextmanager
def nothing_changes(model: Model) -> Iterator[None]:
    """The call leaves the model and all global random generators as they were, whether it succeeds or not."""
    before = state_of(model)
    try:
        yield
    finally:
        after = state_of(model)
        for name, value in before.items():
            require(after[name] == value, f"unchanged {name}")


def state_of(model: Model) -> dict[str, Any]:
    """What a call must leave alone, cheap to compare: a weight counts its changes itself."""
    numpy_state: Any = np.random.get_state()
    state: dict[str, Any] = {
        "random state of Python": random.getstate(),
        "random state of NumPy": (numpy_state[1].tobytes(), numpy_state[2:]),
        "random state of torch": torch.get_rng_state().numpy().tobytes(),
        "threads": torch.get_num_threads(),
        "gradient mode": torch.is_grad_enabled(),
        "default type": torch.get_default_dtype(),
    }
    network = getattr(model, "network", None)
    if isinstance(network, torch.nn.Module):
        state["weights"] = [(w._version, w.data_ptr(), w.requires_grad, w.grad is None) for w in network.parameters()]
        state["hooks"] = [
            (len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks), m.training, "forward" in vars(m))
            for m in network.modules()
        ]
        state["attention function"] = getattr(getattr(network, "config", None), "_attn_implementation", None)
    return state
