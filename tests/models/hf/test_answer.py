import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from tests.families import word_pieces
from tests.tasks import PAIR, TEXT, inputs_of, network_of


@pytest.fixture(scope="module")
def answerer():
    return heedful.wrap(network_of("answer", "bert"), word_pieces())


def test_the_predicted_answer_is_the_best_span(answerer):
    with torch.no_grad():
        output = answerer.network(**inputs_of("answer", "bert"))
    start, end = output.start_logits[0, 6:-1].numpy(), output.end_logits[0, 6:-1].numpy()
    words = TEXT.split()
    spans = {(a, b): start[a] + end[b] for a in range(len(words)) for b in range(a, len(words))}
    first, last = max(spans, key=spans.get)
    explanation = heedful.explain(answerer, PAIR, "attention-mean")
    assert explanation.target.name == " ".join(words[first : last + 1])
    assert explanation.output == pytest.approx(spans[first, last])
    assert "One more pass found the predicted answer" in str(explanation.notes[0])
    other = heedful.explain(answerer, PAIR, "attention-mean", against="bad story")
    assert other.output == pytest.approx(spans[first, last] - spans[1, 2])


@pytest.mark.parametrize(
    ("target", "against", "message"),
    [
        ("ory", None, "inside of a token; there it says 'story'"),
        ("Paris", None, "does not contain the answer 'Paris'"),
        ("a", None, "occurs 2 times in the context; name one of them: a#1 to a#2"),
        ("a#3", None, "occurs 2 times"),
        ("plot#2", None, "'plot' occurs once in the context; name it without a number"),
        (7, None, "named by its text"),
        (["a", "b"], None, "named by its text"),
        ("plot", "plot", "two answers; 'plot' was given twice"),
    ],
)
def test_an_answer_that_is_no_span_is_refused(answerer, target, against, message):
    with pytest.raises(BadInput, match=message):
        heedful.explain(answerer, PAIR, "attention-mean", target=target, against=against)


def test_a_question_needs_its_context(answerer):
    with pytest.raises(BadInput, match=r"heedful.Pair\(question, context\)"):
        heedful.explain(answerer, TEXT)


def test_a_batch_gives_the_scores_of_its_texts_alone(answerer):
    pairs = [PAIR, heedful.Pair("the plot ?", "a dull film .")]
    together = heedful.explain(answerer, pairs, "gradient-attention")
    for pair, own in zip(pairs, together, strict=True):
        assert np.allclose(heedful.explain(answerer, pair, "gradient-attention").scores, own.scores, atol=1e-10)


def test_spans_have_no_probability(answerer):
    with pytest.raises(Unsupported, match="spans have no probability; leave `scale` out"):
        heedful.explain(answerer, PAIR, "leave-one-out", scale="probability")
