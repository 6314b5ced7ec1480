import json

import numpy as np
import pytest

from heedful.document.stored import document_as_dict, stored_document
from heedful.generation.prompt import read_prompt
from tests.families import PAIR, build, pictures


def documents():
    yield build("gpt2").encode("the film was good")
    yield build("bert").encode(PAIR)
    yield read_prompt(build("bart"), "a prompt", ["the film", "a story"])
    yield build("vit").encode(pictures()[0])


def test_a_document_is_read_back_from_json():
    for document in documents():
        kept = document_as_dict(document)
        read = stored_document(json.loads(json.dumps(kept)))
        assert document_as_dict(read) == kept
        for name in ("ids", "words", "known", "segments", "passages"):
            assert np.array_equal(getattr(read, name), getattr(document, name)), name
        assert (read.text, read.pieces, read.spans) == (document.text, document.pieces, document.spans)


@pytest.mark.parametrize("change", [{"pieces": ["a"]}, {"words": [0, 0, 5, 1, 1]}, {"spans": [[0, 99]] * 5}])
def test_tokens_without_a_place_are_refused(change):
    kept = document_as_dict(build("gpt2").encode("the film was good"))
    assert len(kept["ids"]) == 5
    with pytest.raises(ValueError, match="the document's .* is not valid"):
        stored_document({**kept, **change})
