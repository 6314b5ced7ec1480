import numpy as np

from heedful.document.alignment.align import align
from heedful.models.language.appended import append_output
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
