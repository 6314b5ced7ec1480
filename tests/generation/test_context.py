from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.generation.prompt import read_prompt
from tests.families import build

CONTEXT, PROMPT, OUTPUT = "an actor was good . the plot was dull .", "the film was", [40, 12, 7]
FEW = {"n_null": 19, "progress": False, "chat": False}


def told(family="gpt2", context=CONTEXT, output=OUTPUT, **settings):
    return heedful.context(build(family), context, PROMPT, output, **{**FEW, **settings})


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
def test_scores_are_shapley_values_of_the_contrast_with_the_token_preferred_without_context(family):
    """Two sentences: a Shapley value is the mean of two differences, of texts masked by hand."""
    model, reliance = build(family), told(family, absence="replace")
    assert reliance.attribution.sources == ("an actor was good .", "the plot was dull .")
    asked = read_prompt(model, PROMPT, CONTEXT, False)
    first = asked.unit_of("sentence")

    def value(keep, place):
        gone = (asked.passages >= 0) & ~np.isin(first, keep)
        text = replace(asked, ids=np.where(gone, model.replacement_id, asked.ids))
        row = model.logits([model.continued(text, OUTPUT[:place])])[0]
        return row[OUTPUT[place]] - row[preferred(place)]

    def preferred(place):
        row = model.logits([model.continued(read_prompt(model, PROMPT, None, False), OUTPUT[:place])])[0]
        return next(number for number in np.argsort(-row) if number != OUTPUT[place])

    for place in range(len(OUTPUT)):
        none, one, two, both = (value(keep, place) for keep in ([], [0], [1], [0, 1]))
        expected = [(one - none + both - two) / 2, (two - none + both - one) / 2]
        assert reliance.attribution.scores[place] == pytest.approx(expected, abs=1e-6)
        assert reliance.attribution.values[place] == pytest.approx(both, abs=1e-6)


def test_an_output_that_the_model_wrote_is_compared_with_what_null_contexts_would_write():
    written = heedful.generate(build("gpt2"), PROMPT, context=CONTEXT, chat=False, max_new=4, progress=False)
    chosen, given = told(output=written), told(output=list(written.ids))
    assert any("wrote the output" in note for note in chosen.notes)
    assert not any("wrote the output" in note for note in given.notes)
    assert chosen.p_cxmi.tolist() == given.p_cxmi.tolist()
    # A null context makes its own token more likely than most others.
    assert chosen.p_value.mean() > given.p_value.mean()


def test_a_null_context_that_is_too_long_has_its_own_sentence():
    context = "a b c d e f g h i j " * 2
    room = build("gpt2").room
    # Words of several tokens: as many words as the context has do not fit.
    with pytest.raises(BadInput, match="The model cannot read a null context: The prompt and its context have more"):
        told(context=context, foreign=["extraordinarily" * room + " word."])


def test_the_same_call_gives_the_same_result():
    assert told().as_dict() == told().as_dict()


@pytest.mark.slow
def test_contexts_of_the_null_are_seldom_called_reliant():
    """The model is random, and the context is drawn as the null contexts are: any token in at most 5 % of outputs."""
    from heedful.generation.dependence import null_contexts

    drawn = null_contexts(["a b c d e f"], "foreign", None, 60, np.random.default_rng(5))
    calls = [
        told(context=context, seed=seed, method="leave-one-out", unit="passage").reliant.any()
        for seed, context in enumerate(drawn)
    ]
    # Above 9 of 60 has a probability below 0.001 at a rate of 5 %.
    assert sum(calls) <= 9


def test_a_context_of_one_sentence_is_cut_into_words():
    assert told(context="the plot was dull").attribution.sources == ("the", "plot", "was", "dull")


def test_without_an_output_the_model_writes_one():
    reliance = heedful.context(build("gpt2"), CONTEXT, PROMPT, max_new=4, **FEW)
    assert 1 <= len(reliance.tokens) <= 4


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"context": "  "}, "context is blank"),
        ({"context": []}, "no context"),
        ({"context": "good film " * 2_000}, "more tokens than the model reads"),
        ({"output": ""}, "output is empty"),
        ({"output": [10**9]}, "another number"),
        ({"n_null": 5}, "n_null=19"),
        ({"alpha": 0.0}, "error rate"),
        ({"method": "none"}, "no method"),
        ({"null": "none"}, "null"),
    ],
)
def test_bad_input_is_a_sentence(wrong, sentence):
    with pytest.raises(BadInput, match=sentence):
        told(**wrong)


def test_a_model_that_does_not_write_is_refused():
    with pytest.raises(Unsupported, match="does not write"):
        heedful.context(heedful.load("paper"), CONTEXT, PROMPT, progress=False)
