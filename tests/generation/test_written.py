import numpy as np
import pytest

from heedful.document import SPECIAL
from heedful.errors import BadInput
from heedful.generation.written import fixed, groups_of, with_output
from tests.families import build

PROMPT, OUTPUT = "the film was good", [40, 12, 7, 20]


@pytest.mark.parametrize("family", ["gpt2", "own-gpt2", "llama", "t5", "bart"])
def test_tokens_are_put_behind_the_prompt(family):
    model = build(family)
    prompt = model.encode(PROMPT)
    document = with_output(model, prompt, OUTPUT)
    assert document.ids[-4:].tolist() == OUTPUT
    assert document.text.startswith(PROMPT)
    assert set(document.segments[-4:].tolist()) == {1}


def test_a_space_between_letters_is_put_and_noted():
    model = build("gpt2")
    document = with_output(model, model.encode(PROMPT), "dull")
    assert document.text == f"{PROMPT} dull"
    assert any("A space was put" in str(note) for note in document.notes)
    for output in (" dull", ", dull"):
        document = with_output(model, model.encode(PROMPT), output)
        assert document.text == PROMPT + output
        assert not document.notes


@pytest.mark.parametrize("output", ["", " \n", []])
def test_no_output_is_refused(output):
    model = build("gpt2")
    with pytest.raises(BadInput, match="output is empty|has no tokens"):
        with_output(model, model.encode(PROMPT), output)


@pytest.mark.parametrize("number", [-1, 10**6])
def test_a_token_that_the_model_does_not_have_is_refused(number):
    model = build("gpt2")
    with pytest.raises(BadInput, match="the output contains another number"):
        with_output(model, model.encode(PROMPT), [number])


def test_a_text_that_the_tokens_do_not_spell_is_refused():
    model = build("t5")
    with pytest.raises(BadInput, match="cannot write"):
        with_output(model, model.encode(PROMPT), "漢字")


def test_an_output_that_does_not_fit_is_refused():
    model = build("gpt2")
    prompt = model.encode(PROMPT)
    n = model.room + 1 - len(prompt.ids)
    # The last token is scored and not read, so one more fits.
    assert len(with_output(model, prompt, [40] * n).ids) == model.room + 1
    with pytest.raises(BadInput, match="Shorten one of them"):
        with_output(model, prompt, [40] * (n + 1))


def test_a_fixed_output_has_no_units():
    model = build("gpt2")
    document = with_output(model, model.encode(PROMPT), OUTPUT)
    assert fixed(document).units("word") == tuple(PROMPT.split())
    assert set(fixed(document).words[-4:].tolist()) == {SPECIAL}
    assert np.array_equal(fixed(document).ids, document.ids)


def test_parts_are_tokens_words_the_sequence_or_a_span():
    model = build("gpt2")
    document = with_output(model, model.encode(PROMPT), " bright film")
    n = int((document.segments == 1).sum())
    assert groups_of(document, n, "tokens")[1] == tuple((place,) for place in range(n))
    names, words = groups_of(document, n, "words")
    assert names == ("bright", "film")
    assert [place for group in words for place in group] == list(range(n))
    assert groups_of(document, n, "sequence") == (("bright film",), (tuple(range(n)),))
    assert groups_of(document, n, (0, 1))[1] == ((0,),)


@pytest.mark.parametrize("of", [(2, 2), (-1, 1), (0, 9), (1, 0)])
def test_a_span_outside_of_the_output_is_refused(of):
    model = build("gpt2")
    document = with_output(model, model.encode(PROMPT), OUTPUT)
    with pytest.raises(BadInput, match="the span"):
        groups_of(document, 4, of)


def test_special_tokens_of_the_output_are_words_of_their_own():
    model = build("gpt2")
    end = next(iter(model.end_ids))
    document = with_output(model, model.encode(PROMPT), [40, end, end])
    assert groups_of(document, 3, "words")[1] == ((0,), (1,), (2,))
