import json

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch.nn.functional import logsigmoid

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.models.readout import counted_forwards
from tests import tasks
from tests.families import TEXTS, loud, network_of, word_pieces


def test_probes_run_once_in_wrap_and_are_counted():
    network, tokenizer = network_of("bert")
    network = loud(network).double().eval()
    with counted_forwards(network) as passes:
        model = heedful.wrap(network, tokenizer)
    assert model.probe_forwards == len(passes) == 9
    for _ in range(2):
        with counted_forwards(network) as passes:
            explanation = heedful.explain(model, TEXTS[0], "rollout")
        assert explanation.facts["forwards"] == len(passes) == 1


@pytest.fixture(scope="module")
def multi_label():
    torch.manual_seed(0)
    network, tokenizer = network_of("bert")
    network.config.problem_type = "multi_label_classification"
    return loud(network).double().eval(), tokenizer


def test_the_probability_of_a_label_is_a_sigmoid(multi_label):
    network, tokenizer = multi_label
    model = heedful.wrap(network, tokenizer)
    assert model.returns == "independent-logits"
    ids = tokenizer(TEXTS[0], return_tensors="pt")
    with torch.no_grad():
        logits = network(**ids).logits[0].numpy()
    for index, label in enumerate(model.classes):
        p = expit(logits[index])
        for scale, expected in (("log-probability", np.log(p)), ("probability", p), ("logit", logits[index])):
            explanation = heedful.explain(model, TEXTS[0], "leave-one-out", target=label, scale=scale)
            assert explanation.output == pytest.approx(expected, abs=1e-9)
    others = heedful.explain(model, TEXTS[0], "leave-one-out", target=0, against=1, scale="probability")
    assert others.output == pytest.approx(expit(logits[0]) - expit(logits[1]), abs=1e-9)


@pytest.mark.parametrize("scale", ["log-probability", "probability"])
def test_gradients_of_a_label_s_probability_are_torch_s(multi_label, scale):
    network, tokenizer = multi_label
    model = heedful.wrap(network, tokenizer)
    ids = tokenizer(TEXTS[0], return_tensors="pt")
    e = network.get_input_embeddings()(ids["input_ids"]).detach().requires_grad_()
    logits = network(inputs_embeds=e, attention_mask=ids["attention_mask"]).logits
    value = logsigmoid(logits)[0, 2] if scale == "log-probability" else logits[0, 2].sigmoid()
    (gradient,) = torch.autograd.grad(value, e)
    explanation = heedful.explain(model, TEXTS[0], "gradient-l1", target=2, scale=scale, unit="token")
    assert np.allclose(explanation.scores, gradient[0, 1:-1].abs().sum(dim=-1), atol=1e-9)
    losses = heedful.explain(model, TEXTS[0], "leave-one-out", target=2, scale=scale, unit="token")
    masked = ids["input_ids"].repeat(5, 1)
    masked[torch.arange(5), torch.arange(1, 6)] = tokenizer.mask_token_id
    with torch.no_grad():
        values = network(input_ids=masked).logits[:, 2].sigmoid()
    values = values.log() if scale == "log-probability" else values
    assert np.allclose(losses.scores, value.item() - values.numpy(), atol=1e-9)


def test_the_command_line_and_compare_read_labels_as_sigmoids(multi_label, tmp_path, heedful_command):
    network, tokenizer = multi_label
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with torch.no_grad():
        logits = network(**tokenizer(TEXTS[0], return_tensors="pt")).logits[0]
    given = ("--model", tmp_path, "--precision", "float64", "--target", "1", "--json")
    for scale, expected in (("log-probability", logsigmoid(logits)[1]), ("probability", logits.sigmoid()[1])):
        code, out, _ = heedful_command("explain", TEXTS[0], "--method", "gradient-l2", "--scale", scale, *given)
        assert code == 0
        assert json.loads(out)["output"] == pytest.approx(expected.item(), abs=1e-9)
    comparison = heedful.compare(
        heedful.wrap(network, tokenizer), TEXTS[0], ["gradient-l2", "anchors"], target=1, scale="probability"
    )
    assert comparison["gradient-l2"].output == pytest.approx(logits.sigmoid()[1].item(), abs=1e-9)
    assert "above 0" in " ".join(comparison["anchors"].notes) or "below 0" in " ".join(comparison["anchors"].notes)


def test_a_regression_has_no_probability_and_returns_can_be_said():
    network, tokenizer = network_of("single-logit")
    network.config.problem_type = "regression"
    model = heedful.wrap(network.double().eval(), tokenizer)
    assert str(heedful.explain(model, TEXTS[0], "gradient-l2").target) == "the score of LABEL_0"
    with pytest.raises(Unsupported, match="not known whether this model returns logits"):
        heedful.explain(model, TEXTS[0], "gradient-l2", scale="probability")
    said = heedful.wrap(network, tokenizer, returns="logits")
    assert heedful.explain(said, TEXTS[0], "gradient-l2", scale="probability").output == pytest.approx(
        expit(said([TEXTS[0]])[0, 0]), abs=1e-9
    )
    decoder, pairs = network_of("gpt2")
    with pytest.raises(BadInput, match="leave `returns` out"):
        heedful.wrap(decoder.eval(), pairs, returns="probabilities")


@pytest.mark.parametrize(
    ("kind", "needs"), [("next", "Pair\\(text, next text\\)"), ("choice", "Pair\\(prompt, choice\\)")]
)
def test_a_model_of_pairs_refuses_a_single_text(kind, needs):
    model = heedful.wrap(tasks.network_of(kind, "bert"), word_pieces())
    with pytest.raises(BadInput, match=f"{needs}, or --second"):
        heedful.explain(model, "a bad story", "lime")
    assert len(heedful.explain(model, tasks.KINDS[kind][1], "leave-one-out").scores)
