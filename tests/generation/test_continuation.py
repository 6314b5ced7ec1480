from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import Unsupported
from heedful.explainers import MaskingExplainer, configure
from heedful.explainers.planning import configure_for
from heedful.explainers.run import run_explainer
from heedful.family import setting_types
from heedful.generation.attribute import FEW, attribute
from heedful.generation.continuation import Continuation
from heedful.generation.written import fixed
from heedful.models.question import Question, Wanted
from heedful.target import Target
from tests.families import build

PROMPT, OUTPUT = "the film was good", [40, 12, 7, 20]
OTHERS = {
    "random": "its scores depend on the number of units",
    "smooth-gradient": "its noise has the shape of the text",
    "relevance-attention": "it explains logits, tested below",
    "lrp": "it explains logits, tested below",
    "anchors": "it asks whether the probability is halved, not whether the prediction stays; tested below",
}


def written(family, n=4):
    model = build(family)
    return model, model.continued(model.encode(PROMPT), OUTPUT[:n])


def shortened(document, n):
    """The same text, of which the model reads only the first tokens."""
    columns = {name: getattr(document, name)[:n] for name in ("ids", "pieces", "spans", "words", "known", "segments")}
    return replace(document, **columns)


def tokens_of(document):
    """Every token of the output by itself."""
    return tuple(str(n) for n in range(len(OUTPUT))), tuple((n,) for n in range(len(OUTPUT)))


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5", "bart"])
@torch.no_grad()
def test_values_are_log_probabilities_of_the_next_token_step_by_step(family):
    model, document = written(family)
    rows = Continuation(model, *tokens_of(document)).logits([document])
    for place, number in enumerate(OUTPUT):
        _, before = written(family, place)
        logits = model.logits([before])[0]
        assert rows[0, place] == pytest.approx(logits[number] - np.logaddexp.reduce(logits), abs=1e-10)
    assert Continuation(model).logits([document])[0, 0] == pytest.approx(rows.sum(), abs=1e-10)


FEW_METHODS = (
    "attention-mean",
    "gradient-attention",
    "gradient-x-input",
    "integrated-gradients",
    "leave-one-out",
    "lime",
)
FITTING = [name for name, kind in heedful.methods().items() if not kind.needs & {"pooling", "weights"}]
CASES = [("gpt2", method) for method in FITTING if method not in OTHERS]
CASES += [(family, method) for family in ("llama", "t5", "own-gpt2") for method in FEW_METHODS]


@pytest.mark.parametrize(("family", "method"), CASES)
def test_every_method_explains_a_token_as_it_explains_the_next_token_of_what_was_written_before(family, method):
    """The oracle is the model without `Continuation`: it reads only what was written before and predicts the token."""
    model, document = written(family)
    removal = {"absence": "replace"} if "absence" in setting_types(heedful.methods()[method]) else {}
    explainer = configure_for(model, method, {"unit": "word", **removal}, FEW)
    masking = isinstance(explainer, MaskingExplainer)
    table = attribute(model, PROMPT, OUTPUT, method, **removal)
    place = 2
    before = shortened(document, len(document.ids) - len(OUTPUT) + place)
    target = Target(OUTPUT[place], "it", None, "log-probability", "logits")
    question = Question(model, (fixed(before) if masking else before,), Wanted(target, None, "log-probability"))
    (expected,) = run_explainer(explainer, question)
    scores = table.scores[place]
    assert scores[: len(expected.scores)] == pytest.approx(expected.scores, abs=1e-8)
    assert scores[len(expected.scores) :] == pytest.approx(0.0, abs=1e-12)
    assert table.explanations[place].output == pytest.approx(expected.output, abs=1e-10)


@pytest.mark.parametrize("method", ["relevance-attention", "lrp"])
def test_relevance_is_that_of_the_logit_of_the_next_token(method):
    model, document = written("gpt2")
    table = attribute(model, PROMPT, OUTPUT, method, measure="logit")
    before = shortened(document, len(document.ids) - 2)
    (expected,) = run_explainer(configure(method, {}), Question(model, (before,), Wanted(OUTPUT[2])))
    assert table.scores[2, : len(expected.scores)] == pytest.approx(expected.scores, abs=1e-8)
    with pytest.raises(Unsupported, match="measure"):
        attribute(model, PROMPT, OUTPUT, method)


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_gradients_of_every_part_are_those_of_separate_passes(family):
    model, document = written(family)
    groups = ((0,), (1, 2), (3,), (0, 1, 2, 3))
    model = Continuation(model, ("a", "b", "c", "all"), groups)
    rows = model.embed([document]).detach().repeat(2, 1, 1)
    rows[1] *= 0.5
    for number in range(len(groups)):
        value, slopes = model.slopes(number, rows, document)
        inputs = rows.clone().requires_grad_()
        expected = model.forward(inputs, [document, document])[:, number]
        (gradient,) = torch.autograd.grad(expected.sum(), inputs)
        assert torch.allclose(value, expected, atol=1e-10)
        assert torch.allclose(slopes, gradient, atol=1e-10)


@pytest.mark.parametrize("absence", ["replace", "delete", "mask", "mean", "zero"])
@pytest.mark.parametrize("family", ["llama", "bart"])
def test_a_masked_value_is_that_of_the_masked_text(family, absence):
    """The oracle scores each masked text alone, token by token."""
    base, document = written(family)
    document = fixed(document)
    model = Continuation(base, *tokens_of(document))
    rng = np.random.default_rng(0)
    keep = (rng.random((6, len(document.ids))) < 0.5) | (document.words < 0)
    rows = model.masked_values(document, keep, absence)
    for row, mask in zip(rows, keep, strict=True):
        for place, number in enumerate(OUTPUT):
            n = len(document.ids) - len(OUTPUT) + place
            target = Target(number, "it", None, "log-probability", "logits")
            alone = base.masked(shortened(document, n), target, mask[None, :n], absence)
            assert row[place] == pytest.approx(alone[0], abs=1e-9)


def test_a_mask_is_evaluated_once_for_all_parts(monkeypatch):
    base, document = written("gpt2")
    document = fixed(document)
    model = Continuation(base, *tokens_of(document))
    keep = np.ones((3, len(document.ids)), dtype=bool)
    keep[1, 0] = keep[2, 1] = False
    first = model.masked(document, Target(0, "", None, "log-probability", "log-probabilities"), keep, "replace")
    monkeypatch.setattr(base, "token_logits", None)
    again = model.focused(0).masked(
        document, Target(0, "", None, "log-probability", "log-probabilities"), keep, "replace"
    )
    assert np.array_equal(first, again)


def test_earlier_output_as_a_source_keeps_the_tokens_that_are_scored():
    base, document = written("gpt2")
    model = Continuation(base, *tokens_of(document), written=tuple(OUTPUT))
    keep = np.ones((2, len(document.ids)), dtype=bool)
    keep[1, -3] = False
    rows = model.masked_values(document, keep, "replace")
    changed = document.ids.copy()
    changed[-3] = base.replacement_id
    logits = base.token_logits(base.embed([replace(document, ids=changed)]), [document], None, 5)[0, :4]
    expected = logits.log_softmax(dim=-1)[torch.arange(4), torch.tensor(OUTPUT)].detach().numpy()
    assert rows[1] == pytest.approx(expected, abs=1e-10)
    assert rows[1, :2] == pytest.approx(rows[0, :2], abs=1e-12)
    with pytest.raises(Unsupported, match="cannot be deleted"):
        model.masked_values(document, keep, "delete")


def test_a_cut_source_is_hidden_from_what_is_written_alone():
    """The oracle edits the attention maps: the rows that predict the output have no weight on the source."""
    base, document = written("llama")
    model = Continuation(base, *tokens_of(document))
    keep = np.ones((1, len(document.ids)), dtype=bool)
    keep[0, 1:3] = False
    n, first = len(document.ids) - 1, len(document.ids) - len(OUTPUT) - 1

    def edit(_layer, maps):
        maps = maps.clone()
        maps[:, :, first:n, 1:3] = 0.0
        return maps / maps.sum(dim=-1, keepdim=True)

    assert model.masked_values(document, keep, "cut")[0] == pytest.approx(model.edited([document], edit)[0], abs=1e-9)


def test_half_precision_is_stored_apart():
    base, document = written("gpt2")
    document = fixed(document)
    model = Continuation(base, *tokens_of(document))
    target = Target(0, "", None, "log-probability", "log-probabilities")
    keep = np.ones((1, len(document.ids)), dtype=bool)
    model.masked(document, target, keep, "replace")
    with torch.autocast("cpu", torch.bfloat16):
        model.masked(document, target, keep, "replace")
    assert len(model.store.values) == 2


def test_an_anchor_keeps_at_least_half_of_the_probability():
    base, document = written("gpt2")
    table = attribute(base, PROMPT, OUTPUT, "anchors", threshold=0.6, absence="replace")
    model, document = Continuation(base, *tokens_of(document)), fixed(document)
    masks = np.array([[bool(number >> word & 1) for word in range(4)] for number in range(16)])
    tokens = np.where(document.words < 0, True, masks[:, document.words])
    values = model.masked_values(document, tokens, "replace")
    for place, explanation in enumerate(table.explanations):
        anchor = explanation.scores > 0
        holds = (values[:, place] > explanation.output - np.log(2) - 1e-12)[(masks | ~anchor).all(axis=1)]
        assert holds.mean() >= 0.6 or any(note.kind == "budget" for note in explanation.notes)
    with pytest.raises(Unsupported, match="half of its probability"):
        attribute(base, PROMPT, OUTPUT, "anchors", measure="logit")


@pytest.mark.parametrize("method", ["leave-one-out", "shapley-sampled", "gradient-x-input"])
def test_a_part_is_not_a_source_of_itself_nor_of_what_came_before(method):
    table = attribute(build("gpt2"), PROMPT, OUTPUT, method, earlier="source")
    own = table.scores[:, -len(table.document.word_texts) + 4 :]
    words = table.document.words[-len(OUTPUT) :] - 4
    for row, (place,) in zip(own, table.positions, strict=True):
        later = np.arange(own.shape[1]) >= words[place]
        assert row[later] == pytest.approx(0.0, abs=1e-9)
        assert place == 0 or np.abs(row[~later]).max() > 1e-3


@pytest.mark.parametrize("method", ["leave-one-out", "gradient-x-input"])
def test_the_common_beginning_of_two_outputs_explains_nothing_of_itself(method):
    """The oracle is the difference of two attributions, each of one output."""
    model, prompt = build("gpt2"), "the film was good"
    first, second = " and very good", " and very bad"
    table = attribute(model, prompt, first, method, against=second, earlier="source")
    alone = [attribute(model, prompt, text, method, earlier="source").scores for text in (first, second)]
    assert table.scores == pytest.approx(alone[0] - alone[1], abs=1e-8)
    assert table.scores[:2] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("family", ["gpt2", "llama", "own-gpt2", "t5"])
def test_the_first_token_is_predicted_from_something_when_the_whole_prompt_is_deleted(family):
    """Without a start token nothing would stand before the output, and its first logits would be those of others."""
    base, document = written(family)
    document = fixed(document)
    model = Continuation(base, *tokens_of(document))
    masks = np.array([[bool(number >> word & 1) for word in range(4)] for number in range(16)])
    keep = np.where(document.words < 0, True, masks[:, document.words])
    alone = np.concatenate([model.masked_values(document, row[None], "delete", 1) for row in keep])
    assert model.masked_values(document, keep, "delete", 16) == pytest.approx(alone, abs=1e-9)
    if family != "t5":
        first = replace(shortened(document, 1), ids=np.array([base.replacement_id]), text="")
        bare = base.continued(first, OUTPUT)
        logits = base.token_logits(base.embed([bare]), [bare], None, 5)[0, :4].log_softmax(dim=-1).detach()
        assert alone[0] == pytest.approx(logits[torch.arange(4), torch.tensor(OUTPUT)].numpy(), abs=1e-9)


def test_values_and_gradients_are_those_of_the_network_as_it_is():
    base, document = written("gpt2")
    model, target = Continuation(base), Target(0, "", None, "log-probability", "log-probabilities")
    keep, e = np.ones((1, len(document.ids)), dtype=bool), model.embed([document])

    def results():
        return model.masked(document, target, keep, "replace")[0], model.slopes(0, e, document)[1].norm().item()

    def change(module, inputs, output):
        return (output[0] * 2, *output[1:]) if isinstance(output, tuple) else output * 2

    before, fingerprint = results(), base.fingerprint
    handle = base.network.transformer.h[0].attn.register_forward_hook(change)
    base.fingerprint = "changed"
    try:
        changed = results()
    finally:
        handle.remove()
        base.fingerprint = fingerprint
    assert model.fingerprint == fingerprint
    assert changed[0] != pytest.approx(before[0])
    assert changed[1] != pytest.approx(before[1])
    assert results() == before
