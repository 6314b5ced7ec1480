import numpy as np
import pytest
import torch

from heedful.document import SPECIAL
from heedful.errors import Unsupported
from heedful.models.attention_hook import still
from heedful.models.language import check_writes, first_tokens
from tests.families import TEXTS, build

FAMILIES = ("gpt2", "own-gpt2", "llama", "t5", "bart")
OUTPUT = [7, 12, 9, 20]


def written(family, text=TEXTS[0]):
    model = build(family)
    return model, model.continued(model.encode(text), OUTPUT)


@torch.no_grad()
def logits_of(model, documents, n_last=5):
    return model.token_logits(model.embed(documents), documents, None, n_last)


def test_a_classifier_is_refused_as_a_writer_in_a_sentence():
    with pytest.raises(Unsupported, match="does not write text"):
        check_writes(build("bert"))


@pytest.mark.parametrize("family", FAMILIES)
def test_reading_token_by_token_gives_the_logits_of_one_pass(family):
    model, document = written(family)
    with torch.no_grad(), still(model.network):
        prefix = model.read(model.encode(TEXTS[0]))
        rows = [prefix.logits]
        for number in OUTPUT:
            prefix = model.go_on(prefix, torch.tensor([number]))
            rows.append(prefix.logits)
    assert torch.allclose(torch.stack(rows, dim=1), logits_of(model, [document]), atol=1e-11)


@pytest.mark.parametrize("family", FAMILIES)
def test_selected_rows_go_on_alone(family):
    model = build(family)
    with torch.no_grad(), still(model.network):
        two = model.select(model.read(model.encode(TEXTS[0])), torch.tensor([0, 0]))
        two = model.go_on(two, torch.tensor([7, 9]))
        expected = two.logits.clone()
        swapped = model.select(two, torch.tensor([1, 0]))
        assert torch.equal(swapped.logits, expected.flip(0))
        after = model.go_on(swapped, torch.tensor([12, 12]))
    ends = [model.continued(model.encode(TEXTS[0]), [number, 12]) for number in (9, 7)]
    assert torch.allclose(after.logits, logits_of(model, ends, 1)[:, 0], atol=1e-11)


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_of_several_lengths_share_a_batch(family):
    model, long = written(family)
    _, short = written(family, "a dull plot")
    together = logits_of(model, [long, short])
    for document, row in zip((long, short), together, strict=True):
        assert torch.allclose(row, logits_of(model, [document])[0], atol=1e-11)


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_cut_changes_nothing_and_a_cut_word_does(family):
    model, document = written(family)
    keep = np.ones((2, len(document.ids)), dtype=bool)
    keep[1, 1] = False
    with torch.no_grad(), still(model.network):
        logits = model.cut(document, len(OUTPUT) + 1)(keep)
    whole = logits_of(model, [document])[0]
    assert torch.allclose(logits[0], whole, atol=1e-11)
    assert (logits[1] - whole).abs().max() > 0.01


@pytest.mark.parametrize("family", FAMILIES)
def test_a_position_that_is_cut_attends_to_itself(family):
    model, document = written(family)
    keep = np.ones((1, len(document.ids)), dtype=bool)
    keep[0, -1] = False
    with torch.no_grad(), still(model.network):
        logits = model.cut(document, 3)(keep)
    assert torch.allclose(logits, logits_of(model, [document], 3), atol=1e-11)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_output_stands_behind_the_document_in_segment_one(family):
    model, document = written(family)
    n_before = len(document.ids) - len(OUTPUT)
    assert document.ids[n_before:].tolist() == OUTPUT
    assert document.segments[n_before:].tolist() == [1] * len(OUTPUT)
    assert document.text.endswith(model.spell(OUTPUT).strip())
    own = document.words[n_before:]
    assert own.min() > document.words[:n_before].max()
    assert (own != SPECIAL).all()
    spelt = [document.text[start:end] for start, end in document.spans[n_before:]]
    assert spelt == [document.pieces[t] for t in range(n_before, len(document.ids))]


def test_the_first_tokens_of_a_document_keep_their_words_and_special_tokens():
    _, document = written("t5")
    short = first_tokens(document, len(document.ids) - 2)
    assert short.words.tolist() == document.words[:-2].tolist()
    assert SPECIAL in short.words
