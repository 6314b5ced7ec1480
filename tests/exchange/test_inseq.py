"""What inseq gives, read in.

inseq is not installed where these tests run: light objects stand in for its own, of the same class names in a module of
its name, with the attributes that it documents.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput
from tests.families import build


@dataclass
class TokenWithId:
    token: str
    id: int


@dataclass
class FeatureAttributionSequenceOutput:
    source: list
    target: list
    source_attributions: Any = None
    target_attributions: Any = None
    attr_pos_start: int = 0


@dataclass
class GradientFeatureAttributionSequenceOutput(FeatureAttributionSequenceOutput):
    pass


@dataclass
class FeatureAttributionOutput:
    sequence_attributions: list
    step_attributions: Any = None
    info: dict = field(default_factory=dict)


for kind in (FeatureAttributionSequenceOutput, GradientFeatureAttributionSequenceOutput, FeatureAttributionOutput):
    kind.__module__ = "inseq.data.attribution"


def tokens(model, text, **asked):
    ids = model.tokenizer(text, **asked)["input_ids"]
    return [TokenWithId(n, i) for n, i in zip(model.tokenizer.convert_ids_to_tokens(ids), ids, strict=True)]


def later_unknown(values, start):
    """As inseq has it: no numbers for what comes after a step."""
    values = values.clone()
    for step in range(values.shape[1]):
        values[start + step :, step] = float("nan")
    return values


@pytest.mark.parametrize("d", [None, 16])
def test_a_translation_is_read_at_the_step_after_its_beginning(d):
    model = build("t5")
    source, target = tokens(model, "the film was good ."), tokens(model, "a bad plot")
    torch.manual_seed(0)
    last = () if d is None else (d,)
    of_source = torch.randn(len(source), len(target), *last)
    of_target = later_unknown(torch.randn(len(target), len(target), *last), 0)
    kind = FeatureAttributionSequenceOutput if d is None else GradientFeatureAttributionSequenceOutput
    given = FeatureAttributionOutput(
        [kind(source, target, of_source, of_target)], info={"attribution_method": "saliency"}
    )
    for step, begun in enumerate(["", "a", "a bad"]):
        text = heedful.Pair("the film was good .", begun) if begun else "the film was good ."
        read = heedful.read(model, text, given, unit="token")
        assert (read.method, read.target.index) == ("inseq saliency (read)", target[step].id)
        column = torch.cat([of_source[:-1, step], of_target[:step, step]])
        expected = column.sum(dim=-1) if d else column
        assert np.allclose(read.scores, expected.numpy(), atol=1e-6)
        summed = of_source[-1, step].sum() if d else of_source[-1, step]
        assert read.facts["</s>"] == pytest.approx(float(summed), abs=1e-6)
    assert heedful.read(model, text, given).unit == "word"
    assert heedful.read(model, text, given.sequence_attributions[0]).method == "inseq (read)"


def test_a_start_without_attributions_has_a_note():
    model = build("t5")
    source, target = tokens(model, "good film"), tokens(model, "a bad plot")
    given = FeatureAttributionSequenceOutput(source, target, torch.ones(len(source), len(target)))
    read = heedful.read(model, heedful.Pair("good film", "a"), given)
    assert read.scores.tolist() == [1.0, 1.0, 0.0]
    assert any(note.startswith("inseq has no numbers for the start of the output") for note in read.notes)


def test_a_continuation_is_read_at_the_step_after_the_text():
    model = build("gpt2")
    prompt, target = tokens(model, "the film was"), tokens(model, "the film was good and bad .")
    n, n_steps = len(prompt), len(target) - len(prompt)
    torch.manual_seed(0)
    values = later_unknown(torch.randn(len(target), n_steps), n)
    sequence = FeatureAttributionSequenceOutput(prompt, target, None, values, attr_pos_start=n)
    other = tokens(model, "a dull plot was")
    batch = FeatureAttributionOutput(
        [FeatureAttributionSequenceOutput(other[:-1], other, None, torch.ones(len(other), 1), len(other) - 1), sequence]
    )
    for text in ["the film was", "the film was good", "the film was good and"]:
        read, step = heedful.read(model, text, batch, unit="token"), len(tokens(model, text)) - n
        assert read.target.index == target[n + step].id
        assert np.allclose(read.scores, values[: n + step, step].numpy())
        same = heedful.read(model, text, batch, unit="token", target=read.target.index)
        assert same.scores.tobytes() == read.scores.tobytes()
    assert set(heedful.read(model, "a dull plot", batch, unit="token").scores) == {1.0}
    with pytest.raises(
        BadInput, match="^inseq explained 'Ġgood' here, but the target is ' bad'; pass the same token, or none"
    ):
        heedful.read(model, "the film was", batch, target="bad")
    with pytest.raises(BadInput, match="^The text is not the start of what inseq explained"):
        heedful.read(model, "the film", batch)


def test_another_source_or_too_few_rows_are_refused():
    model = build("t5")
    source, target = tokens(model, "good film"), tokens(model, "a bad plot")
    given = FeatureAttributionSequenceOutput(source, target, torch.ones(len(source), len(target)))
    with pytest.raises(
        BadInput, match="^inseq's source is ▁good ▁film </s>, but the model splits 'bad film' into other tokens"
    ):
        heedful.read(model, "bad film", given)
    given.source_attributions = torch.ones(1, len(target))
    with pytest.raises(BadInput, match="^inseq has 1 rows of attributions for 3 tokens"):
        heedful.read(model, "good film", given)
    given.source_attributions = torch.full((3, len(target)), float("nan"))
    with pytest.raises(BadInput, match="^Number 1 of 3 is nan"):
        heedful.read(model, "good film", given)
