import pytest
import torch
import transformers

import heedful
from heedful.errors import BadInput
from tests.families import word_pieces
from tests.tasks import FILLED, TEXT, by_hand, inputs_of, network_of


@pytest.fixture(scope="module")
def filler():
    return heedful.wrap(network_of("masked", "bert"), word_pieces())


@pytest.mark.parametrize("absence", ["delete", "mask"])
def test_the_mask_token_is_still_read_where_words_are_removed(filler, absence):
    explanation = heedful.explain(filler, FILLED, "leave-one-out", target="story", absence=absence)
    assert "[MASK]" not in (*explanation.units, *explanation.facts)
    inputs = inputs_of("masked", "bert")
    with torch.no_grad():
        whole = by_hand("masked", filler.network, inputs).item()
        for place, score in zip((1, 2, 4, 5), explanation.scores, strict=False):
            keep = torch.arange(inputs["input_ids"].shape[1]) != place
            if absence == "mask":
                value = by_hand("masked", filler.network, {**inputs, "attention_mask": keep.long()[None]})
            else:
                output = filler.network(**{name: x[:, keep] for name, x in inputs.items()})
                value = output.logits[0, 3 - (place < 3), word_pieces().get_vocab()["story"]]
            assert score == pytest.approx(whole - value.item(), abs=1e-9)


def test_names_of_missing_words(filler):
    names, vocabulary = filler.target_names(filler.encode(FILLED)), word_pieces().get_vocab()
    assert names.meanings("Story") == [vocabulary["story"]]  # the tokenizer lower-cases
    assert names.meanings("##ing") == [vocabulary["##ing"]]
    assert names.meanings("id:30") == names.meanings("x (id:30)") == [30]
    assert names.meanings("unbelievable") == []
    assert all(names.meanings(names.shown(number)) == [number] for number in range(len(vocabulary)))
    predicted = heedful.explain(filler, FILLED, "attention-mean")
    with torch.no_grad():
        best = filler.network(**inputs_of("masked", "bert")).logits[0, 3].argmax().item()
    assert names.meanings(predicted.target.name) == [best]
    with pytest.raises(BadInput, match="not one token at the mask; it is read as un, ##b"):
        heedful.explain(filler, FILLED, target="unbelievable")


def test_a_pipeline_that_fills_masks_gives_its_model(filler):
    pipeline = transformers.pipeline("fill-mask", model=filler.network, tokenizer=word_pieces())
    assert heedful.wrap(pipeline).fingerprint == filler.fingerprint


@pytest.mark.parametrize(("text", "n"), [(TEXT, 0), ("a [MASK] and [MASK]", 2)])
def test_a_text_needs_one_mask_token(filler, text, n):
    with pytest.raises(BadInput, match=f"one .MASK., where a word is missing; {n} were read"):
        heedful.explain(filler, text)
