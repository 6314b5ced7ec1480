"""Names of next tokens: what a person types gives that token, and what is shown explains it."""

from functools import cache

import numpy as np
import pytest
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, normalizers

import heedful
from heedful.errors import BadInput
from tests.families import BOTH, DECODERS, build, byte_pairs, loud, texts_for

WORDS = ["the", "red", "ball", "dog", "foot", "film", "1", "2"]


@cache
def sentence_pieces() -> hf.PreTrainedTokenizerFast:
    """SentencePiece with bytes beside letters, as Llama has: "." is a byte and a piece."""
    scores = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *((f"<0x{byte:02X}>", -20.0) for byte in range(256))]
    letters = sorted({letter for word in WORDS for letter in word} | {"▁", ".", ","})
    scores += [(letter, -9.0) for letter in letters if len(letter) == 1 and letter not in WORDS]
    scores += [(word, -5.0) for word in WORDS] + [(f"▁{word}", -4.0) for word in (*WORDS[:-2], ".")]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


@cache
def llama() -> heedful.models.Model:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
    config = hf.LlamaConfig(vocab_size=len(sentence_pieces()), max_position_embeddings=64, **sizes)
    return heedful.wrap(loud(hf.LlamaForCausalLM(config)).double().eval(), sentence_pieces())


def token(piece):
    return sentence_pieces().convert_tokens_to_ids(piece)


def explained(text, name):
    return heedful.explain(llama(), text, "gradient-l2", target=name).target


def test_a_word_is_named_with_its_space():
    assert explained("the red", " ball").index == token("▁ball")
    assert explained("the red", "▁ball").index == token("▁ball")
    # Typed after a space, the word has none of its own.
    assert explained("the red ", "ball").index == token("ball")
    assert str(explained("the red", " ball")) == "the logit of ' ball'"
    # There is no " 1" in this vocabulary.
    assert explained("the red", "1").index == token("1")


def test_of_a_piece_and_a_byte_the_one_that_the_tokenizer_gives_is_meant():
    assert sentence_pieces().decode([token("a"), token("<0x2E>")]) == sentence_pieces().decode([token("a"), token(".")])
    assert explained("the ball", ".").index == token(".")
    assert explained("the ball", "<0x2E>").index == token("<0x2E>")
    assert explained("the ball", "<0x2E>").name == f". (id:{token('<0x2E>')})"


def test_an_ambiguous_name_is_refused_with_numbers_and_probabilities():
    row = llama()(["the red"])[0]
    p = np.exp(row) / np.exp(row).sum()
    with pytest.raises(BadInput) as error:
        explained("the red", "ball")
    for piece in ("▁ball", "ball"):
        assert f"(number {token(piece)}, probability {p[token(piece)]:.3g})" in str(error.value)
    assert "' ball'" in str(error.value)
    assert f"'ball (id:{token('ball')})'" in str(error.value)


def test_a_numeric_string_is_never_a_number():
    assert explained("the red", 12).index == 12
    assert explained("the red", "id:12").index == 12
    with pytest.raises(BadInput, match=r"'12' is not one of .* give an int, or id:12"):
        explained("the red", "12")
    with pytest.raises(BadInput, match="'qqq' is not one of the model's"):
        explained("the red", "qqq")
    with pytest.raises(BadInput, match="There is no class 99999"):
        explained("the red", "id:99999")


@pytest.mark.parametrize("text", ["the red", "the red ", "the foot", "the ball.", "1"])
def test_every_token_is_reached_by_the_name_that_is_shown_and_by_its_number(text):
    for model in (llama(), build("gpt2"), build("llama")):
        names = model.target_names(model.encode(text))
        shown = [names.shown(number) for number in range(len(names))]
        assert len(set(shown)) == len(shown)
        assert [names.meanings(name) for name in shown] == [[number] for number in range(len(names))]
        assert [names.meanings(f"id:{number}") for number in range(len(names))] == [[n] for n in range(len(names))]


@pytest.mark.parametrize("family", [*DECODERS, *BOTH])
def test_the_prediction_is_explained_by_its_name(family):
    model = build(family)
    for text in texts_for(family):
        predicted = heedful.explain(model, text, "gradient-l2").target
        again = heedful.explain(model, text, "gradient-l2", target=predicted.name).target
        assert again == predicted
        assert predicted.index == model([text])[0].argmax()


def test_the_name_of_another_token_with_this_number_is_refused():
    names = llama().target_names(llama().encode("the red"))
    assert names.meanings(f"ball (id:{token('ball')})") == [token("ball")]
    assert names.meanings(f"ball (id:{token('dog')})") == []


def test_what_byte_pairs_add_to_a_text_is_their_name():
    model, tokenizer = build("gpt2"), byte_pairs()
    names = model.target_names(model.encode("the film was"))
    (number,) = names.meanings(" good")
    assert tokenizer.decode([*tokenizer("the film was")["input_ids"], number]) == "the film was good"
    assert names.meanings("Ġgood") == [number]
    # Part of a character has the name that the vocabulary gives it.
    part = tokenizer.convert_tokens_to_ids("Ã")
    assert names.shown(part) == f"Ã (id:{part})"


def test_the_start_of_a_translation_is_named_as_it_is_typed():
    model = build("t5")
    names = model.target_names(model.encode("the film was good ."))
    assert names.meanings("good") == names.meanings("▁good")
    assert len(names.meanings("good")) == 1
