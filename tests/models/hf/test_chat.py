import pytest
from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast

import heedful
from heedful.document import SPECIAL
from heedful.errors import BadInput
from heedful.models.hf.chat import read_chat
from tests.families import byte_pairs, loud, network_of

TEMPLATE = (
    "{{ bos_token }}<|system|>the film{{ eos_token }}"
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""A system prompt of words that a message may have too."""


def talking(template=TEMPLATE):
    """Byte pairs with a start token that the tokenizer adds itself, and a chat template that writes it."""
    tokenizer = Tokenizer.from_str(byte_pairs().backend_tokenizer.to_str())
    tokenizer.add_special_tokens(["<|begin|>", "<|user|>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", special_tokens=[("<|begin|>", tokenizer.token_to_id("<|begin|>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|begin|>", eos_token="<|end|>", chat_template=template
    )


def chatting(template=TEMPLATE):
    """A tiny Llama that talks."""
    network, _ = network_of("llama")
    tokenizer = talking(template)
    network.resize_token_embeddings(len(tokenizer))
    return heedful.wrap(loud(network).double().eval(), tokenizer)


@pytest.mark.parametrize(
    "message", ["the film", "user", "good", "  a bad story !\n", "naïve 😀 \ud800", "<|end|> good"]
)
def test_the_tokens_are_those_of_apply_chat_template_and_only_the_message_has_words(message):
    tokenizer = talking()
    chat = [{"role": "user", "content": message.replace("\ud800", "�")}]
    document, start = read_chat(tokenizer, message)
    ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=True, return_dict=False)
    assert document.ids.tolist() == list(ids)
    assert ids.count(tokenizer.bos_token_id) == 1
    written = message.replace("\ud800", "�")
    assert document.text[start:].startswith(written)
    assert document.text[: document.word_spans[0][0]].strip().endswith("<|user|>")
    inside = {place for a, b in document.word_spans for place in range(a, b)}
    wanted = {start + place for place, character in enumerate(written) if character.strip()}
    assert wanted <= inside <= set(range(start, start + len(written)))


def test_a_token_that_the_message_shares_with_the_template_is_of_the_message():
    template = TEMPLATE.replace("{{ m['content'] }}", "the fi{{ m['content'] }}")
    document, start = read_chat(talking(template), "lm was good")
    assert document.word_texts[0] == "lm"
    assert document.words[[start < b for _, b in document.spans].index(True)] == 0


def test_a_template_that_removes_white_space_is_read():
    document, start = read_chat(talking(TEMPLATE.replace("m['content']", "m['content'] | trim")), "  good film ")
    assert document.word_texts == ("good", "film")
    assert document.text[start:].startswith("good film<|end|>")


def test_words_are_numbered_from_zero():
    document, _ = read_chat(talking(), "a bad story , a bad plot")
    words = document.words[document.words != SPECIAL].tolist()
    assert words == sorted(words)
    assert set(words) == set(range(7))


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{{ raise_exception('no users here') }}", "The chat template failed with .*no users here; give chat=False"),
        ("{{ messages[0]['content'] | upper }}", "The chat template changes the text of the message"),
        ("{{ 'hello' }}", "The chat template changes the text of the message"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_in_a_sentence(template, sentence):
    with pytest.raises(BadInput, match=sentence):
        read_chat(talking(template), "good film")
