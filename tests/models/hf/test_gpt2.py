import pytest
import torch
import transformers as hf

from heedful.errors import Unsupported
from heedful.models.hf.gpt2 import gpt2_of
from tests.families import TEXTS, byte_pairs, loud

SIZES = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32}


def test_rows_that_no_token_uses_are_special():
    torch.manual_seed(0)
    theirs = loud(hf.GPT2LMHeadModel(hf.GPT2Config(**SIZES, vocab_size=340))).double().eval()
    model = gpt2_of(theirs, byte_pairs())
    assert len(model.classes) == 340
    assert model.vocabulary.special == (0, *range(330, 340))
    ids = torch.from_numpy(model.encode(TEXTS[0]).ids)[None]
    with torch.no_grad():
        assert abs(model(TEXTS[:1]) - theirs(ids).logits[:, -1].numpy()).max() < 1e-11


@pytest.mark.parametrize(
    "change",
    [
        {"activation_function": "relu"},
        {"scale_attn_by_inverse_layer_idx": True},
        {"scale_attn_weights": False},
        {"tie_word_embeddings": False},
    ],
)
def test_another_kind_of_gpt2_is_refused(change):
    with pytest.raises(Unsupported):
        gpt2_of(hf.GPT2LMHeadModel(hf.GPT2Config(**SIZES, vocab_size=330, **change)), byte_pairs())


def test_another_family_is_refused():
    llama = hf.LlamaConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=330
    )
    with pytest.raises(Unsupported, match="llama"):
        gpt2_of(hf.LlamaForCausalLM(llama), byte_pairs())
