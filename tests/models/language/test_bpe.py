import json
import random
from unicodedata import category

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from heedful.errors import BadInput
from heedful.models.language.bpe import BYTES, END, divide_words, join_pair, learn_byte_pairs, spelt, unspelt
from tests.families import CORPUS

HOSTILE = [
    "",
    " ",
    "low login",
    "don't you'll I'M they'RE we've 'tis ''s",
    "a  b\n\n c \t\r\n  ",
    "x\x1c\x1d\x1e\x1fy \x85\xa0\u2003\u3000z\u200b",
    "3.14 ² ½ Ⅷ ٣ 一二三 ㈣ x²y",
    "snake_case __init__ a_1_b",
    "日本語 Привет 😀👍🏽 é e\u0301 \ufeff\u00ad",
    "price: $1,000!!! (50%) <br /><br />",
    "a\u0300\u0301b ไทย हिन्दी العربية",
    "\ufffd\ufffe\U0010ffff",
]


def learnt_by_tokenizers(texts, n_tokens):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=n_tokens, initial_alphabet=alphabet, show_progress=False)
    )
    return tokenizer


def hostile_text(seed):
    rng = random.Random(seed)
    kinds = ["ab", " \n\t", "'stmdrevl ", "0²Ⅷ", "_.,!-", "日é\u0301😀", "\x1c\x85\u3000\u200b"]
    return "".join(rng.choice(rng.choice(kinds)) for _ in range(300))


def pairs_of(vocabulary):
    return [[spelt(vocabulary.tokens[left]), spelt(vocabulary.tokens[right])] for left, right in vocabulary.merges]


def test_the_lectures_example_low_and_login_shares_the_token_lo():
    # "low" and "login": the pair (l, o) is the most frequent one, then all are equal and the smallest ids come first.
    vocabulary = learn_byte_pairs(["low", "login"], len(BYTES) + 2)
    assert pairs_of(vocabulary) == [["l", "o"]]
    assert [vocabulary.tokens[n] for n in vocabulary.encode("login")] == [b"lo", b"g", b"i", b"n"]


def test_the_lectures_compound_divides_into_its_words():
    texts = ["Abwasser"] * 9 + ["behandlungs"] * 9 + ["anlage"] * 9
    vocabulary = learn_byte_pairs(texts, 300)
    ids = vocabulary.encode("Abwasserbehandlungsanlage")
    assert [vocabulary.tokens[n].decode() for n in ids] == ["Abwasser", "behandlungs", "anlage"]


@pytest.mark.parametrize("texts", [CORPUS, HOSTILE * 2, [hostile_text(seed) for seed in range(20)], ["aaaa aaa aa"]])
def test_pairs_and_encodings_are_those_of_the_library_tokenizers(texts):
    theirs = learnt_by_tokenizers(texts, 500)
    ours = learn_byte_pairs(texts, 501)
    assert pairs_of(ours) == json.loads(theirs.to_str())["model"]["merges"]
    for text in [*texts, *HOSTILE]:
        assert ours.encode(text) == theirs.encode(text).ids


@pytest.mark.parametrize("text", [*HOSTILE, *(hostile_text(seed) for seed in range(20, 40))])
def test_words_and_spans_are_those_of_the_library_tokenizers(text):
    theirs = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    assert [spelt(word.encode()) for word in divide_words(text)] == [word for word, _ in theirs]
    tokenizer = learnt_by_tokenizers(CORPUS, 300)
    spans = learn_byte_pairs(CORPUS, 301).spans(text)
    assert [(start, end) for _, start, end in spans] == tokenizer.encode(text).offsets


def test_every_character_that_python_knows_is_divided_like_its_category():
    # The library's Unicode may be newer or older than Python's, so the rule is compared, not the library.
    for number in (*range(0x3500), *range(0xF900, 0x11000), *range(0x1F000, 0x20000)):
        character = chr(number)
        kind = category(character)
        if kind in ("Cs", "Cn"):
            continue
        together = {"L": "a", "N": "1"}.get(kind[0], "!")
        if not character.isspace() and character != "'":
            assert divide_words(together + character) == [together + character], hex(number)


def test_any_bytes_are_encoded_without_loss():
    vocabulary, rng = learn_byte_pairs(CORPUS, 330), np.random.default_rng(0)
    for content in (bytes(range(256)), "日é😀".encode()[1:], *(rng.bytes(200) for _ in range(20))):
        assert vocabulary.decode(vocabulary.encode(content)) == content


def test_the_end_of_a_text_is_in_no_text():
    vocabulary = learn_byte_pairs([END] * 50, 330)
    assert vocabulary.special[0] not in vocabulary.encode(END)
    assert vocabulary.decode([*vocabulary.encode("a"), vocabulary.special[0]]) == b"a"


def test_spelling_turns_every_byte_into_a_visible_character_and_back():
    assert spelt(b" low") == "Ġlow"
    assert unspelt(spelt(bytes(range(256)))) == bytes(range(256))
    assert [spelt(bytes([byte])) for byte in BYTES] == sorted(pre_tokenizers.ByteLevel.alphabet())


def test_a_pair_is_joined_from_left_to_right():
    assert join_pair([1, 1, 1, 2, 1, 1], (1, 1), 9) == [9, 1, 2, 9]


def test_a_word_of_many_letters_is_encoded_in_time():
    vocabulary = learn_byte_pairs(CORPUS, 330)
    text = "thefilm" * 3_000
    assert vocabulary.decode(vocabulary.encode(text)) == text.encode()


def test_a_vocabulary_without_room_for_the_bytes_is_refused():
    with pytest.raises(BadInput, match="256 bytes"):
        learn_byte_pairs(CORPUS, 256)
