"""Our GPT-2 with the weights of one of `transformers`."""

import json
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedful.errors import Unsupported
from heedful.models.language.bpe import BytePairs, unspelt
from heedful.models.language.gpt2 import Gpt2Config, network_with
from heedful.models.language.writer import Writer


def gpt2_of(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Writer:
    """The same model in the lecture's letters: equal logits, computed by `Gpt2Network`."""
    c: Any = network.config
    if c.model_type != "gpt2":
        raise Unsupported(f"Only the weights of a GPT-2 can be read; this is a {c.model_type}. Wrap it instead.")
    if (
        c.activation_function not in ("gelu_new", "gelu_pytorch_tanh")
        or not c.scale_attn_weights
        or c.scale_attn_by_inverse_layer_idx
        or not c.tie_word_embeddings
    ):
        raise Unsupported("This GPT-2 has another non-linearity, scale of attention or output; wrap it instead.")
    config = Gpt2Config(
        c.vocab_size, c.n_positions, c.n_embd, c.n_layer, c.n_head, c.n_inner or 4 * c.n_embd, c.layer_norm_epsilon
    )
    theirs = {name.removeprefix("transformer."): tensor for name, tensor in network.state_dict().items()}
    names = {"wte.weight": "W_e", "wpe.weight": "W_p", "ln_f.weight": "norm.weight", "ln_f.bias": "norm.bias"}
    ours = {own: theirs[name] for name, own in names.items()}
    parts = {"ln_1": "norm_1", "ln_2": "norm_2", "attn.c_attn": "W_qkv", "attn.c_proj": "W_o"}
    parts |= {"mlp.c_fc": "W_1", "mlp.c_proj": "W_2"}
    for layer in range(config.depth):
        for part, own in parts.items():
            weight = theirs[f"h.{layer}.{part}.weight"]
            # Their maps have a row for every input, ours one for every output.
            ours[f"layers.{layer}.{own}.weight"] = weight.T.contiguous() if weight.dim() > 1 else weight
            ours[f"layers.{layer}.{own}.bias"] = theirs[f"h.{layer}.{part}.bias"]
    return Writer(
        network_with(config, {name: w.detach().clone() for name, w in ours.items()}), _pairs(tokenizer, c), False
    )


def _pairs(tokenizer: Any, config: Any) -> BytePairs:
    """The tokenizer's vocabulary; a model may have rows that no token uses."""
    if not tokenizer.is_fast:
        raise Unsupported("The merges of a slow tokenizer cannot be read; load it with use_fast=True.")
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    numbers, added = tokenizer.get_vocab(), {t.content: n for n, t in tokenizer.added_tokens_decoder.items()}
    tokens = [f"<unused {n}>".encode() for n in range(config.vocab_size)]
    for name, number in numbers.items():
        tokens[number] = name.encode() if name in added else unspelt(name)
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
    unused = set(range(config.vocab_size)) - set(numbers.values())
    end = tokenizer.eos_token_id
    special = (end, *sorted((set(added.values()) | unused) - {end}))
    return BytePairs(tuple(tokens), tuple((numbers[a], numbers[b]) for a, b in pairs), special)
