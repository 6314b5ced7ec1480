import numpy as np

from heedful.document.alignment.align import align
from heedful.models.language.appended import append_output, tokens_behind
from heedful.models.language.tokenizer import ByteTokenizer
from tests.families import build


def test_output_gets_words_spans_and_a_segment_of_its_own():
    model = build("own-gpt2")
    document, tokenizer = model.encode("good film"), ByteTokenizer(model.vocabulary)
    ids = model.vocabulary.encode(" bad")
    alignment = align(tokenizer, ids, (" bad",), [False] * len(ids), None, None)
    both = append_output(document, ids, " bad", alignment, "\n")
    assert both.text == "good film\n bad"
    assert both.word_texts == ("good", "film", "bad")
    assert both.segments.tolist() == [0] * len(document.ids) + [1] * len(ids)
    assert np.array_equal(both.ids, [*document.ids, *ids])
    assert both.passages is None


def test_tokens_behind_a_text_get_no_space_from_the_tokenizer():
    """As SentencePiece does: the first word of a text has a space before it, and quotes join the mark behind them."""
    vocabulary = {"▁no": 0, '"': 1, '".': 2, ".": 3, "▁": 4, "\n": 5, "▁.": 6}

    def encode(text):
        text, ids = ("▁" + text).replace("▁\n", "\n"), []
        while text:
            piece = max((p for p in vocabulary if text.startswith(p)), key=len)
            ids, text = [*ids, vocabulary[piece]], text.removeprefix(piece)
        return ids

    assert encode('no".') == [0, 2]
    assert tokens_behind('no"', ".", encode) == [3]
    assert tokens_behind("no", ".", encode) == [3]
