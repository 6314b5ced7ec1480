from dataclasses import replace

import numpy as np
import pytest
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import heedful
from heedful.document import SPECIAL
from heedful.errors import BadInput, HeedfulError
from heedful.generation.prompt import read_prompt
from tests.families import build, network_of
from tests.models.hf.test_chat import TEMPLATE, chatting

PASSAGES = ["the film was good .", "a bad story", "not dull !"]
PROMPT = "was the film good ?"


def told(document):
    """The characters of the tokens of every passage."""
    numbers = document.unit_of("passage")
    return [
        "".join(document.text[a:b] for (a, b), number in zip(document.spans, numbers, strict=True) if number == passage)
        for passage in range(document.n_units("passage"))
    ]


def without_spaces(texts):
    return [text.replace(" ", "") for text in texts]


def test_a_prompt_alone_is_read_as_any_text():
    model = build("gpt2")
    document = read_prompt(model, PROMPT)
    assert document.ids.tolist() == model.encode(PROMPT).ids.tolist()
    assert document.passages is None


@pytest.mark.parametrize("family", ["gpt2", "own-gpt2", "llama", "t5", "bart"])
def test_every_passage_has_its_own_tokens(family):
    document = read_prompt(build(family), PROMPT, PASSAGES)
    assert document.text == "\n\n".join([*PASSAGES, PROMPT])
    assert list(document.units("passage")) == PASSAGES
    assert without_spaces(told(document)) == without_spaces(PASSAGES)


def test_a_text_as_context_is_divided_at_blank_lines():
    model = build("gpt2")
    as_text = read_prompt(model, PROMPT, "\n\nthe film was good .\n \n\na bad story\n\nnot dull !\n")
    assert as_text.text == read_prompt(model, PROMPT, PASSAGES).text
    assert list(as_text.units("passage")) == PASSAGES


def test_line_breaks_inside_a_passage_are_of_the_passage():
    document = read_prompt(build("gpt2"), PROMPT, ["the film\nwas good", "a bad story"])
    broken = [place for place, piece in enumerate(document.pieces) if piece == "\n"]
    # The first is inside of the first passage; the others are between passages.
    assert [int(document.passages[place]) for place in broken] == [0, *[SPECIAL] * (len(broken) - 1)]


def test_a_token_across_a_boundary_goes_to_the_passage_that_most_of_it_is_in():
    vocabulary = {"<unk>": 0, "ab\n\nc": 1, "d": 2, "a": 3, "b": 4, "c": 5, "\n": 6, "b\n\nc": 7, "b\n\ncd": 8}
    document = read_prompt(wrap_words(vocabulary, ["ab\n\nc", "d", "\n", "\n", "a"]), "a", ["ab", "cd"])
    assert document.passages.tolist() == [0, 1, SPECIAL, SPECIAL, SPECIAL]
    # Of equal parts the first counts.
    document = read_prompt(wrap_words(vocabulary, ["a", "b\n\nc", "d", "\n", "\n", "a"]), "a", ["ab", "cd"])
    assert document.passages.tolist() == [0, 0, 1, SPECIAL, SPECIAL, SPECIAL]
    document = read_prompt(wrap_words(vocabulary, ["a", "b\n\ncd", "\n", "\n", "a"]), "a", ["ab", "cd"])
    assert document.passages.tolist() == [0, 1, SPECIAL, SPECIAL, SPECIAL]


def wrap_words(vocabulary, tokens):
    """A decoder whose tokenizer divides a text into just these tokens."""
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    rest = "|".join(sorted({token.replace("\n", "\\n") for token in tokens}, key=len, reverse=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(rest), "isolated")
    tokenizer.decoder = decoders.Fuse()
    network, _ = network_of("gpt2")
    return heedful.wrap(network.eval(), PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>"))


def test_a_chat_is_read_as_the_tokenizer_reads_it_and_only_the_message_has_units():
    model = chatting()
    document = read_prompt(model, PROMPT, PASSAGES)
    message = [{"role": "user", "content": "\n\n".join([*PASSAGES, PROMPT])}]
    read = model.tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=True, return_dict=False)
    assert document.ids.tolist() == list(read)
    assert document.text == model.tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
    assert list(document.word_texts) == " ".join([*PASSAGES, PROMPT]).split()
    assert list(document.units("passage")) == PASSAGES
    assert without_spaces(told(document)) == without_spaces(PASSAGES)


def test_chat_may_be_left_out_or_demanded():
    model = chatting()
    assert read_prompt(model, PROMPT, chat=False).text == PROMPT
    assert read_prompt(model, PROMPT, chat=True).text == read_prompt(model, PROMPT).text != PROMPT


def test_a_template_that_removes_white_space_keeps_the_passages_in_place():
    document = read_prompt(chatting(TEMPLATE.replace("m['content']", "m['content'] | trim")), f"{PROMPT} ", PASSAGES)
    assert list(document.units("passage")) == PASSAGES


def test_an_encoder_decoder_reads_the_prompt_as_its_source():
    document = read_prompt(build("bart"), PROMPT, PASSAGES)
    assert document.segments.tolist() == [0] * (len(document.ids) - 1) + [1]
    assert document.unit_of("passage")[-1] == SPECIAL


def test_a_prompt_that_fills_the_model_is_read_and_a_longer_one_is_refused():
    model = build("gpt2")
    fitting = "the " * model.room
    document = read_prompt(model, fitting.strip())
    assert len(document.ids) == model.room
    for family in ("gpt2", "own-gpt2", "bart"):
        with pytest.raises(BadInput, match=r"have more tokens than the model reads \(64\); shorten them"):
            read_prompt(build(family), PROMPT, fitting)
    with pytest.raises(BadInput, match="more tokens than the model reads"):
        read_prompt(chatting(), fitting)


@pytest.mark.parametrize(
    ("prompt", "context", "chat", "sentence"),
    [
        ("", None, None, "The prompt is empty"),
        (" \n", PASSAGES, None, "The prompt is empty"),
        (PROMPT, " \n\n ", None, "The context is blank"),
        (PROMPT, ["good", " "], None, "Passage 2 of the context is blank"),
        (PROMPT, None, True, "This model has no chat template"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(prompt, context, chat, sentence):
    with pytest.raises(HeedfulError, match=sentence):
        read_prompt(build("gpt2"), prompt, context, chat)


def test_a_passage_that_the_model_does_not_read_is_refused(monkeypatch):
    model = build("gpt2")
    document = model.encode("good\n\nbad\n\nfilm")
    without = np.where([piece == "bad" for piece in document.word_texts], SPECIAL, np.arange(3))[document.words]
    monkeypatch.setattr(model, "encode", lambda _: replace(document, words=without))
    with pytest.raises(BadInput, match="The model reads no token of passage 2; leave it out"):
        read_prompt(model, "film", ["good", "bad"])


def test_an_empty_list_of_passages_is_no_context():
    assert read_prompt(build("gpt2"), PROMPT, []).passages is None
