"""Inseq itself beside ours, on tiny models in double precision; for an environment that has Inseq 0.7.1.

`PYTHON -m benchmarks.generation.parity_inseq` prints the largest difference of each pair of tables. The tests cannot
install Inseq; they compare with its definitions (`tests/parity/test_generation_inseq.py`), and this program compares
with the package.
"""

import copy
from typing import Any

import inseq
import numpy as np

from heedful.generation.attribute import attribute
from tests.families import build

PROMPT, OUTPUT, OTHER = "the film was good", " and very good", " and very bad"
SOURCE, TARGET = "the film was good .", "a dull plot"


def scores(result: Any, what: str) -> np.ndarray:
    """[token × output × …] what Inseq attributes to the "source", or to the "target", a decoder's whole text."""
    return getattr(result.sequence_attributions[0], f"{what}_attributions").double().numpy()


def inseq_result(model: Any, method: str, prompt: str, text: str, **settings: Any) -> Any:
    own = copy.deepcopy(model.network)
    if method == "attention":
        own.set_attn_implementation("eager")  # Others give no weights. Of Llama it computes them in single precision.
    network = inseq.load_model(own, method, tokenizer=model.tokenizer, device="cpu")
    return network.attribute(prompt, text, show_progress=False, **settings)


def compare(name: str, mine: np.ndarray, theirs: np.ndarray) -> None:
    """The largest difference, relative to the largest score; Inseq writes NaN where a token comes later."""
    theirs = np.nan_to_num(theirs)
    scale = max(1e-300, float(np.abs(theirs).max()))
    print(f"  {name:70}{float(np.abs(mine - theirs).max()) / scale:.1e}  {mine.shape}")


def decoders(family: str) -> None:
    """Gradients, contrasts and attention of a decoder."""
    model = build(family)
    n_prompt = len(model.encode(PROMPT).ids)
    ids = model.encode(PROMPT + OUTPUT).ids[n_prompt:].tolist()
    settings: dict[str, Any] = {"unit": "token", "progress": None}
    for measure, fn in (
        ("log-probability", {"attributed_fn": "probability", "logprob": True}),
        ("logit", {"attributed_fn": "logit"}),
    ):
        theirs = inseq_result(model, "input_x_gradient", PROMPT, PROMPT + OUTPUT, **fn)
        table = scores(theirs, "target").sum(-1).T
        mine = attribute(model, PROMPT, ids, "gradient-x-input", measure=measure, **settings).scores
        compare(f"{family}: input_x_gradient, {fn}", mine, table)
    for measure, fn in (("logit", "contrast_logits_diff"), ("log-probability", "contrast_prob_diff")):
        extra = {"logprob": True} if measure == "log-probability" else {}
        theirs = inseq_result(
            model,
            "input_x_gradient",
            PROMPT,
            PROMPT + OUTPUT,
            attributed_fn=fn,
            contrast_targets=PROMPT + OTHER,
            **extra,
        )
        table = scores(theirs, "target").sum(-1).T
        against = {"measure": measure, "against": OTHER, "earlier": "fixed", **settings}
        mine = attribute(model, PROMPT, OUTPUT, "gradient-x-input", **against).scores
        compare(f"{family}: {fn}, prompt", mine, table[:, :n_prompt])
    theirs = inseq_result(model, "attention", PROMPT, PROMPT + OUTPUT)
    table = scores(theirs, "target").mean(axis=(-2, -1)).T
    mine = attribute(model, PROMPT, ids, "attention-mean", **settings).scores
    compare(f"{family}: attention", mine, table)


def encoder_decoders(family: str) -> None:
    """Gradients and attention of an encoder-decoder, on the source side; Inseq also explains the end token."""
    model = build(family)
    settings: dict[str, Any] = {"unit": "token", "progress": None}
    theirs = inseq_result(
        model, "input_x_gradient", SOURCE, TARGET, attribute_target=True, attributed_fn="probability", logprob=True
    )
    source = scores(theirs, "source").sum(-1).T
    mine = attribute(model, SOURCE, TARGET, "gradient-x-input", **settings)
    compare(
        f"{family}: input_x_gradient, source", mine.scores[:, : source.shape[1] - 1], source[: len(mine.outputs), :-1]
    )
    theirs = inseq_result(model, "attention", SOURCE, TARGET)
    table = scores(theirs, "source").mean(axis=(-2, -1)).T
    mine = attribute(model, SOURCE, TARGET, "attention-mean", **settings)
    compare(f"{family}: attention, source", mine.scores[:, : table.shape[1] - 1], table[: len(mine.outputs), :-1])


if __name__ == "__main__":
    for family in ("gpt2", "llama"):
        decoders(family)
    for family in ("t5", "bart"):
        encoder_decoders(family)
