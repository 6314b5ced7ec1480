"""Single-layer models whose scores and values are written down word by word, so that every cause can be planted."""

from collections.abc import Mapping, Sequence

import torch

from heedful.explainers import configure, settings_of
from heedful.explainers.run import run_explainer
from heedful.explanation import Explanation
from heedful.models import Model
from heedful.models.network import Config, Network, weight_shapes
from heedful.models.question import Question, ask
from heedful.models.single_layer import SingleLayer
from heedful.models.vocabulary import Vocabulary
from heedful.target import Scale

Look = tuple[Sequence[float], Sequence[float]]
"""Of a word the score in every head, and its value there for the class "positive"."""

FAR = -30.0
"""A score that leaves no attention to speak of."""
LADDER = ("attention-mean", "gradient-x-input", "leave-one-out", "lime-exact", "shapley-exact")


def planted(
    words: Mapping[str, Look], T_max: int, replacement: Look | None = None, cls: Look | None = None
) -> SingleLayer:
    """The logit of "positive" is softmax pooling over these scores and values, that of "negative" its opposite.

    Positions play no part. Without a look of their own neither [cls] nor [unk], which is also the padding, takes
    attention.
    """
    n_heads = len(next(iter(words.values()))[0])
    nothing = ([FAR] * n_heads, [0.0] * n_heads)
    config = Config(n_heads=n_heads, T_max=T_max, d_e=2 * n_heads + 2, d_att=1, d_out=1)
    names = ("[cls]", "[unk]", *words)
    looks = (cls or nothing, replacement or nothing, *words.values())
    weights = {
        name: torch.zeros(shape, dtype=torch.float64) for name, shape in weight_shapes(config, len(names)).items()
    }
    for row, (scores, values) in zip(weights["W_e"], looks, strict=True):
        row[: 2 * n_heads] = torch.tensor([*scores, *values], dtype=torch.float64)
    weights["W_e"][0, 2 * n_heads] = 1.0
    for head in range(n_heads):
        weights["W_q"][head, 0, 2 * n_heads] = 1.0
        weights["W_k"][head, 0, head] = 1.0
        weights["W_v"][head, 0, n_heads + head] = 1.0
        weights["W_l"][head, :, 0] = torch.tensor([-1.0, 1.0])
    network = Network(config, weights).double()
    network.W_p.zero_()
    return SingleLayer(network, Vocabulary(names), ("negative", "positive"))


def asked(
    model: Model,
    text: object,
    names: Sequence[str] = LADDER,
    target: str | int | None = "positive",
    scale: Scale = "logit",
    **settings: object,
) -> tuple[Question, list[Explanation]]:
    """A question and its answers by these methods; a setting goes to every method that has it."""
    question = ask(model, [text], target, scale=scale)
    own = settings_of(names, settings)
    return question, [run_explainer(configure(name, own[name]), question)[0] for name in names]
