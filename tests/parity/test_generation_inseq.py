"""Attribution of generated text against the definitions of Inseq 0.7.1, in double precision.

Inseq is not among the packages of the tests, so its definitions are written out here from its source: for every
output token one pass over what came before it (`feature_attribution.py`), the gradient of a step function at the word
vectors times these vectors (`gradient_attribution.py`, `step_functions.py`), or the attention of the last position
(`internals_attribution.py`). `benchmarks/generation/parity_inseq.py` compares with Inseq itself.
"""

import copy

import numpy as np
import pytest
import torch

from heedful.generation.attribute import attribute
from tests.families import build

PROMPT, OUTPUT, OTHER = "the film was good", " and very good", " and very bad"
DECODERS, BOTH = ("gpt2", "llama"), ("t5", "bart")


def steps(model, text, foil=None):
    """For each output token what Inseq reads for it, the token, and another token that it is contrasted with."""
    n = len(model.encode(PROMPT).ids)
    ids, others = (model.encode(PROMPT + end).ids for end in (text, foil or text))
    return [(torch.from_numpy(ids[:place])[None], int(ids[place]), int(others[place])) for place in range(n, len(ids))]


def logit(logits, token, _):
    return logits[token]


def log_probability(logits, token, _):
    return logits.log_softmax(0)[token]


def contrast_logits_diff(logits, token, other):
    # Both tokens after the same text, that of the first output.
    return logits[token] - logits[other]


def contrast_prob_diff(logits, token, other):
    # With `logprob=True`.
    return logits.log_softmax(0)[token] - logits.log_softmax(0)[other]


def input_x_gradient(model, step, foil=None):
    """[output × token] summed over the coordinates of word vectors; zero where a token comes later."""
    table = []
    for ids, token, other in steps(model, OUTPUT, foil):
        e = model.network.get_input_embeddings()(ids).detach().requires_grad_()
        (slope,) = torch.autograd.grad(step(model.network(inputs_embeds=e).logits[0, -1], token, other), e)
        table.append((slope * e)[0].sum(-1).detach().numpy())
    return filled(table)


def filled(table):
    width = len(table[-1]) + 1
    return np.stack([np.pad(row, (0, width - len(row))) for row in table])


def ours(model, method, **settings):
    return attribute(model, PROMPT, OUTPUT, method, unit="token", progress=None, **settings).scores


@pytest.mark.parametrize("family", DECODERS)
@pytest.mark.parametrize(("measure", "step"), [("log-probability", log_probability), ("logit", logit)])
def test_gradient_times_input_is_inseqs_with_earlier_output_as_a_source(family, measure, step):
    model = build(family)
    np.testing.assert_allclose(
        ours(model, "gradient-x-input", measure=measure), input_x_gradient(model, step), atol=1e-6
    )


@pytest.mark.parametrize("family", DECODERS)
@pytest.mark.parametrize(
    ("measure", "step"), [("log-probability", contrast_prob_diff), ("logit", contrast_logits_diff)]
)
def test_a_contrast_of_outputs_that_differ_in_the_last_token_is_inseqs(family, measure, step):
    # Inseq reads the foil's token after the first output, we after the foil's own beginning: here they are the same.
    model = build(family)
    mine = ours(model, "gradient-x-input", measure=measure, against=OTHER, earlier="fixed")
    np.testing.assert_allclose(mine, input_x_gradient(model, step, OTHER)[:, : mine.shape[1]], atol=1e-6)


@pytest.mark.parametrize("family", DECODERS)
def test_mean_attention_is_inseqs_averaged_over_layers_and_heads(family):
    model = build(family)
    eager = copy.deepcopy(model.network)
    eager.set_attn_implementation("eager")
    table = []
    for ids, _, _ in steps(model, OUTPUT):
        with torch.no_grad():
            maps = eager(ids, output_attentions=True).attentions
        table.append(torch.stack(maps)[:, 0, :, -1].mean(dim=(0, 1)).numpy())
    # transformers computes Llama's eager attention in single precision.
    np.testing.assert_allclose(ours(model, "attention-mean"), filled(table), atol=1e-6)


@pytest.mark.parametrize("family", BOTH)
def test_gradient_times_input_of_an_encoder_decoder_is_inseqs_on_the_source_side(family):
    model = build(family)
    source, output = "the film was good .", "a dull plot"
    result = attribute(model, source, output, "gradient-x-input", unit="token", progress=None)
    ids = torch.tensor([model.tokenizer(source)["input_ids"]])
    written = model.tokenizer(output, add_special_tokens=False)["input_ids"]
    begin = torch.tensor([[model.network.config.decoder_start_token_id, *written]])
    for number, token in enumerate(written):
        e = model.network.get_input_embeddings()(ids).detach().requires_grad_()
        read = {"inputs_embeds": e, "decoder_input_ids": begin[:, : number + 1]}
        (slope,) = torch.autograd.grad(model.network(**read).logits[0, -1].log_softmax(0)[token], e)
        row = (slope * e)[0].sum(-1).detach().numpy()
        n = len(row) - 1  # The source's end token is no unit.
        np.testing.assert_allclose(result.scores[number, :n], row[:n], atol=1e-6)
