"""A SentenceTransformer with a classifier on its sentence vectors: of scikit-learn, or a torch module."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import BatchEncoding

from heedful.errors import BadInput, HeedfulError
from heedful.models import Model
from heedful.models.black_box import BlackBox
from heedful.models.foreign import function_of, is_estimator
from heedful.models.hf.load import wrap_module
from heedful.target import Returns, log_probabilities

_PROBES = ["a text", "another, longer text"]
_ROUNDING = 1e-4


@final
class SentenceClassifier(nn.Module):
    """The sentence vectors of a SentenceTransformer (encoder, pooling, norm), followed by a head."""

    def __init__(self, sentences: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.sentences = sentences
        self.head = head

    def forward(self, batch: BatchEncoding) -> Float[Tensor, "batch class"]:
        """The outputs of the head."""
        return self.head(self.sentences(dict(batch))["sentence_embedding"])


def wrap_sentences(
    model: Any, head: Any, classes: Sequence[str] | None, returns: Returns | None, replacement: str
) -> Model:
    """Wraps a SentenceTransformer with its head; with a linear head, attention and gradients are available.

    Whether a classifier is linear is computed from its decision_function. Other classifiers, and linear ones whose
    outputs on texts are not reproduced, are functions of texts, of which only the outputs are used.
    """
    if isinstance(head, nn.Module):
        return wrap_module(SentenceClassifier(model, head), model.tokenizer, returns, classes)
    if not is_estimator(head):
        raise BadInput(
            "A SentenceTransformer needs the classifier of its sentence vectors, of scikit-learn or a torch module: "
            "heedful.wrap(model, head=classifier)."
        )
    scores, names, own = function_of(head, model.encode)
    names = names if classes is None else classes
    vectors, reason = model.encode(_PROBES), f"{type(head).__name__} is not linear, so only its outputs are used."
    linear = _linear_head(head, vectors.shape[1])
    if linear is not None and returns not in (None, linear[1]):
        reason = f"Its decision function returns {linear[1]}, not {returns}, so only its outputs are used."
    elif linear is not None:
        module, expected = SentenceClassifier(model, linear[0].to(next(model.parameters()))), _decisions(head, vectors)
        try:
            wrapped = wrap_module(module, model.tokenizer, linear[1], names)
            if np.abs(wrapped.predict(_PROBES) - expected).max() <= _ROUNDING * np.abs(expected).max():
                return wrapped
            reason = "Its encode does more than its modules (a prompt, for example), so only its outputs are used."
        except HeedfulError as error:
            reason = str(error)
    box = BlackBox(scores, names, replacement, returns or own)
    box.family = f"{type(model).__name__} with {type(head).__name__}"
    box.withheld = dict.fromkeys(("attention", "layers", "gradients"), reason)
    return box


def _linear_head(head: Any, width: int) -> tuple[nn.Linear, Returns] | None:
    """The decision function as a layer, and what it returns; None if it is not linear.

    Weights and intercept are its values at unit vectors and at 0. What it returns follows from `predict_proba`.
    """
    if getattr(head, "decision_function", None) is None:
        return None
    others = np.random.default_rng(0).normal(size=(8, width))
    values = _decisions(head, np.concatenate([np.zeros((1, width)), np.eye(width), others]))
    weights, bias, decisions = values[1:-8] - values[0], values[0], values[-8:]
    if np.abs(decisions - others @ weights - bias).max() > _ROUNDING * np.abs(values).max():
        return None
    layer = nn.Linear(*weights.shape, dtype=torch.float64)
    layer.load_state_dict({"weight": torch.from_numpy(weights.T), "bias": torch.from_numpy(bias)})
    kinds: tuple[Returns, ...] = ("independent-logits", "logits")
    for returns in kinds if getattr(head, "predict_proba", None) is not None else ():
        if np.allclose(np.exp(log_probabilities(decisions, returns)), head.predict_proba(others)):
            return layer, returns
    return layer, "scores"


def _decisions(head: Any, vectors: Float[np.ndarray, "batch d_e"]) -> Float[np.ndarray, "batch class"]:
    """The decision function; of two classes it is a single number, of the second class."""
    values = np.asarray(head.decision_function(vectors), dtype=np.float64)
    return np.stack([-values, values], axis=1) if values.ndim == 1 else values
