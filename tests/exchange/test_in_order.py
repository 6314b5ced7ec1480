"""Pieces that come in the order of a text find their characters, whoever cut them."""

import random

import pytest

import heedful
from heedful.document.alignment.token_text import fold
from heedful.errors import BadInput
from heedful.exchange.in_order import find_in_order
from tests.families import byte_pairs, pieces, word_pieces

WORDS = "good film the was don't it's café naïve U.S. well-known 😀 👍🏽 שלום 好看 film! (great) 3.5 ... -- ﬁne ß bad"


@pytest.fixture(scope="module")
def words():
    """A model that knows nothing of sub-words."""
    return heedful.wrap(lambda texts: [[0.0]] * len(texts))


def texts_at(document, places):
    return [[document.text[a:b] for a, b in spots] for spots in places]


def test_sub_words_are_found_without_being_the_model_s(paper):
    text = "An unbelievable, tokenized film"
    document = paper.encode(text)
    pieces = ["[CLS]", "an", "un", "##believ", "##able", ",", "▁token", "ized", "Ġfilm", "[SEP]"]
    assert texts_at(document, find_in_order(document, pieces)) == [
        *([], ["An"], ["un"], ["believ"], ["able"], [","], ["token"], ["ized"], ["film"], [])
    ]
    e = heedful.read(paper, text, [*zip(pieces, [float(2**n) for n in range(10)], strict=True)])
    assert e.scores.tolist() == [2.0, 4.0 + 8 + 16, 32.0, 64.0 + 128, 256.0]
    assert e.facts == {"elsewhere": 1.0 + 512}
    with pytest.raises(
        BadInput, match="^'un' ends within a word of the text, and no piece covers the rest of the word"
    ):
        find_in_order(document, ["an", "un", "film"])
    with pytest.raises(BadInput, match="^'dull', piece 2 of 2, does not come next in the text"):
        find_in_order(document, ["an", "dull"])


def test_words_may_be_left_out_and_texts_may_contain_names_of_special_tokens(words):
    document = words.encode("a bad<br> film, a very bad film")
    names = ["bad", "<br>", "film", "very", "film", "</s>"]
    assert find_in_order(document, names) == (((2, 5),), ((5, 9),), ((10, 14),), ((18, 22),), ((27, 31),), ())
    with pytest.raises(BadInput, match="^None of the 2 pieces is in the text"):
        find_in_order(document, ["[CLS]", " "])


def test_an_unknown_token_has_what_lies_around_its_place(words):
    document = words.encode("a naïve 好看 film שלום.")
    names = ["[CLS]", "a", "na", "<unk>", "ve", "[UNK]", "film", "[UNK]", "[SEP]"]
    assert texts_at(document, find_in_order(document, names)) == [
        *([], ["a"], ["na"], ["ï"], ["ve"], ["好看"], ["film"], ["שלום."], [])
    ]


@pytest.mark.parametrize("form", ["names", "offsets"])
@pytest.mark.parametrize("tokenizer", [word_pieces, byte_pairs, pieces])
def test_the_tokens_of_any_tokenizer_are_where_its_offsets_say(words, tokenizer, form):
    read, rng = tokenizer(), random.Random(0)
    n_tokens = n_wrong = n_refused = 0
    for _ in range(150):
        drawn = [rng.choice(WORDS.split()) + rng.choice([" ", "  ", "\n", ", ", ""]) for _ in range(6)]
        text = "".join(drawn)
        encoding = read(text, return_offsets_mapping=True)
        offsets = encoding["offset_mapping"]
        named = read.convert_ids_to_tokens(encoding["input_ids"])
        names = named if form == "names" else [text[a:b] for a, b in offsets]
        try:
            places = find_in_order(words.encode(text), names)
        except BadInput:
            n_refused += 1
            continue
        for (a, b), spots, name in zip(offsets, places, named, strict=True):
            # Of unknown tokens, and of the sign for a space, the offsets are no better than a guess.
            if fold(text[a:b]) and name not in ("▁", "[UNK]", "<unk>"):
                n_tokens += 1
                n_wrong += not any(start < b and end > a for start, end in spots)
    assert n_tokens > 1500
    # Behind an unknown token that is white space a letter may stand by chance, and be taken for the next piece.
    assert n_wrong <= 0.002 * n_tokens
    assert n_refused <= 2
