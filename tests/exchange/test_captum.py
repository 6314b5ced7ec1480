"""Attributions of captum, read in, are our own of the same name."""

import numpy as np
import pytest
import torch
from captum.attr import FeatureAblation, LayerIntegratedGradients, visualization
from captum.attr._core.llm_attr import LLMAttributionResult

import heedful
from heedful.errors import BadInput
from tests.families import build, split

TEXT = "a very bad unbelievable story , but not dull !"


@pytest.mark.parametrize(("family", "baseline"), [("torch", 0), ("bert", "[MASK]")])
def test_ablation_is_leave_one_out(family, baseline):
    model = build(family)
    ids = torch.from_numpy(model.encode(TEXT).ids)[None]
    stand_in = baseline if isinstance(baseline, int) else model.tokenizer.convert_tokens_to_ids(baseline)

    def forward(numbers):
        answer = model.network(numbers)
        return answer if isinstance(answer, torch.Tensor) else answer.logits

    theirs = FeatureAblation(forward).attribute(ids, baselines=stand_in, target=1)
    ours = heedful.explain(model, TEXT, "leave-one-out", target=1, unit="token")
    read = heedful.read(model, TEXT, theirs.double(), target=1, unit="token", name="FeatureAblation")
    assert read.method == "FeatureAblation (read)"
    assert np.abs(read.scores - ours.scores).max() < 1e-6
    assert read.signed
    assert read.output == ours.output


def test_integrated_gradients_of_the_embeddings_are_ours():
    model = build("torch")
    ids = torch.tensor([[number for number, _, _ in split(TEXT)]])
    explainer = LayerIntegratedGradients(model.network, model.network.words)
    theirs = explainer.attribute(ids, baselines=torch.zeros_like(ids), target=1, n_steps=32)
    ours = heedful.explain(model, TEXT, "integrated-gradients", target=1, n_steps=32, baseline="unknown")
    read = heedful.read(model, TEXT, theirs, target=1)
    assert theirs.shape == (1, 10, 16)
    assert np.abs(read.scores - ours.scores).max() < 1e-6
    drawn = visualization.VisualizationDataRecord(
        theirs[0].sum(dim=-1), 0.9, "good", "good", "good", 1.0, TEXT.split(), torch.tensor([0.01])
    )
    read = heedful.read(model, TEXT, drawn)
    assert (read.method, read.target.index) == ("captum (read)", 1)
    assert np.abs(read.scores - ours.scores).max() < 1e-6
    assert read.facts == {"convergence": pytest.approx(0.01)}
    with pytest.raises(BadInput, match="^captum attributed good, but the target is bad"):
        heedful.read(model, TEXT, drawn, target="bad")


def result(output, **changes):
    given = {"input_tokens": ["the", "Ġfilm", "Ġwas"], "seq_attr": [1.0, -2.0, 4.0], "output_tokens": output}
    return LLMAttributionResult(**{**given, **changes})


def test_the_next_token_of_a_language_model_is_what_came_first():
    model, text = build("gpt2"), "the film was"
    read = heedful.read(model, text, result(["Ġgood"]))
    assert read.scores.tolist() == [1.0, -2.0, 4.0]
    assert read.target.name == " good"
    both = result(["Ġgood", "Ġ."], token_attr=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert heedful.read(model, text, both).scores.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(BadInput, match="^captum attributed 2 tokens together, but a target is one"):
        heedful.read(model, text, result(["Ġgood", "Ġ."]))
    with pytest.raises(BadInput, match="^captum attributed ' good', but the target is ' bad'"):
        heedful.read(model, text, result(["Ġgood"]), target="bad")
