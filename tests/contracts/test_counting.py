"""What `facts` say was spent is what the network saw, for every explainer on every family, first and second call.

`masks` are masked copies of the document: rows of forward passes inside `Model.masked`, texts of a black box. A model
that pools by attention evaluates them in closed form, without a pass of its network. `forwards` are all other rows that
pass forward, that of the logits included; `backwards` are rows that pass backward. A decoder's pass over the beginning
that all rows of a batch share is part of those rows.
"""

from collections import Counter
from contextlib import contextmanager

import pytest
import torch

import heedful
from heedful.models.question import Question
from tests.families import build, texts_for

FAMILIES = ["paper", "bert", "gpt2", "own-gpt2", "bart", "vit", "transformer", "encoder", "torch", "black box"]
FEW = {"n_samples": 200, "budget": 200, "n_steps": 8}
TEXT = "the film was very good ; not a dull plot"
REFUSED = {("bart", "relevance-attention")}


def fresh(family):
    """A model that has not been used."""
    if family == "paper":
        return heedful.load("paper")
    if family == "black box":
        return heedful.wrap(lambda texts: [[len(text), 3.0 * text.count("o")] for text in texts])
    build.cache_clear()
    return build(family)


def rows_of(arguments, keywords):
    values = [*arguments, *keywords.values()]
    return max(len(value) for value in values if isinstance(value, torch.Tensor) and value.ndim > 1)


@contextmanager
def counting(model):
    """Counts rows forward, backward and in masks, by hooks on the network that the library does not know of."""
    seen, inside = Counter(), []

    def back(gradient):
        seen["backwards"] += len(gradient)

    def forward(rows, logits):
        seen["masks" if inside else "forwards"] += rows
        if logits.requires_grad:
            logits.register_hook(back)

    def hook(module, arguments, keywords, output):
        if keywords.get("use_cache") and keywords.get("past_key_values") is None:
            return
        forward(rows_of(arguments, keywords), output if isinstance(output, torch.Tensor) else output.logits)

    masked = model.masked

    def inner(document, target, keep, *rest):
        inside.append(True)
        try:
            values = masked(document, target, keep, *rest)
        finally:
            inside.pop()
        return values

    def pooled(question, index, keep, *rest):
        seen["masks"] += len(keep)
        return through(question, index, keep, *rest)

    through = Question.masked
    with pytest.MonkeyPatch.context() as patch, patched(model, forward, seen, inside), handle(model, hook):
        if "pooling" in model.offers:
            patch.setattr(Question, "masked", pooled)
        else:
            patch.setattr(model, "masked", inner)
        yield seen


@contextmanager
def handle(model, hook):
    if not hasattr(model, "network"):
        yield
        return
    registered = model.network.register_forward_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        registered.remove()


@contextmanager
def patched(model, forward, seen, inside):
    """The ways to logits that do not call the network: methods of the paper's and of our GPT-2, a function of texts."""
    if hasattr(model, "function"):
        function = model.function

        def counted(texts):
            seen["masks" if inside else "forwards"] += len(texts)
            return function(texts)

        model.function = counted
        yield
        model.function = function
        return
    names = [
        name for name in ("read", "attended", "matrices", "logits") if hasattr(getattr(model, "network", None), name)
    ]
    for name in names:
        before = getattr(model.network, name)

        def after(inputs, before=before):
            logits = before(inputs)
            forward(len(inputs), logits)
            return logits

        setattr(model.network, name, after)
    yield
    for name in names:
        delattr(model.network, name)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_facts_are_what_the_network_saw(family):
    model = fresh(family)
    text = texts_for(family)[0] if family == "vit" else TEXT
    wrong = {}
    for method, member in sorted(heedful.methods().items()):
        if not member.needs <= model.offers or (family, method) in REFUSED:
            continue
        settings = {name: value for name, value in FEW.items() if name in member.__dataclass_fields__}
        for call in ("first", "second"):
            with counting(model) as seen:
                explanation = heedful.explain(model, text, method, **settings)
            reported = {name: explanation.facts.get(name, 0) for name in ("forwards", "backwards", "masks")}
            if reported != (result := {name: seen[name] for name in reported}):
                wrong[method, call] = f"said {reported}, seen {result}"
    assert wrong == {}


@pytest.mark.parametrize("family", ["bert", "black box"])
@pytest.mark.parametrize(
    "limits", [{"memory": "1GB"}, {"seconds": 1000}, {"announce": lambda _: None}, {"half": True}], ids=lambda x: min(x)
)
def test_masks_that_measure_the_cost_or_half_precision_are_counted(family, limits):
    model = fresh(family)
    with counting(model) as seen:
        explanation = heedful.explain(model, TEXT, "lime", n_samples=100, **limits)
    assert explanation.facts["masks"] == seen["masks"]


@pytest.mark.parametrize("family", ["bert", "black box"])
def test_compare_counts_the_masks_of_its_forecast(family):
    model = fresh(family)
    with counting(model) as seen:
        comparison = heedful.compare(model, TEXT, ["lime"], n_samples=100, announce=lambda _: None)
    assert comparison["lime"].facts["masks"] == seen["masks"]


def test_the_maps_of_a_comparison_come_from_the_pass_of_its_method():
    model = fresh("bert")
    with counting(model) as seen:
        comparison = heedful.compare(model, TEXT, ["rollout"])
    assert comparison.maps is not None
    assert seen["forwards"] == 1
