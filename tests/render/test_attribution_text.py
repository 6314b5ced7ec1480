from dataclasses import replace

import pytest

import heedful
from heedful.render.attribution_text import meaning, passes_of, quantity_of, value_of
from tests.families import build

PROMPT, OUTPUT = "the film was good", [40, 12]


def table(method="leave-one-out", **settings):
    return heedful.attribute(build("gpt2"), PROMPT, OUTPUT, method, **settings)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("shapley-sampled", "Shapley values: they divide the log-probability of the part"),
        ("leave-one-out", "the drop of the log-probability of the part when the source is removed"),
        ("gradient-x-input", "its effect to first order"),
        ("attention-mean", "Scores have no sign"),
        ("frozen-cache", "from the sight of the output alone"),
        ("lime", "Explained is the log-probability of the part."),
    ],
)
def test_the_meaning_depends_on_the_method(method, words):
    assert words in meaning(table(method))


def test_the_quantity_is_named():
    assert quantity_of(table(measure="entropy")) == "the entropy of the distribution before the part"
    context = {"context": ["a bad story"]}
    assert "without the context" in quantity_of(table(measure="kl", **context))
    gain = table(measure="context-gain", **context)
    assert value_of(gain, 0) == f"log-probability less that without the context {gain.values[0]:+.4g}"
    bad = heedful.attribute(build("gpt2"), PROMPT, " bad", "leave-one-out", against=" good")
    assert quantity_of(bad).endswith("less that of the other output")
    assert "less that of the other output" in value_of(bad, 0)


def test_a_measure_that_is_not_known_is_named_as_it_is():
    other = replace(table(), settings={"measure": "surprise"})
    assert quantity_of(other) == "surprise"
    assert value_of(other, 0).startswith("surprise ")


def test_the_cost_is_the_number_of_masks():
    assert passes_of(table()) == "5 masked copies of the text were evaluated, each once for all parts."
    assert passes_of(table("gradient-x-input")) == "No masked copy of the text was evaluated."
