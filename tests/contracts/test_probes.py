"""Laws that bind every probe: what it says about itself, that it repeats itself, and on which models it runs."""

import json
import re
from dataclasses import MISSING, fields
from functools import cache
from typing import get_args

import numpy as np
import pytest

import heedful
from heedful.errors import HeedfulError
from heedful.evaluation.probe import probes
from heedful.evaluation.probes import Answer, AttentionUse
from tests.evaluation.probes.models import LABELS, model_of
from tests.families import PAIR, TEXTS, build

NAMES = sorted(probes())
MORE = ["the plot was bad and the actor dull", "not a dull story , but bright"]
DATA = [*zip([*TEXTS, *MORE], LABELS, strict=False)]
TRAIN = [(f"{text} {word}", label) for text, label in DATA for word in ("film", "plot")]
QUICK = {"n_steps": 2, "n_starts": 1, "n_ascent": 2, "n_epochs": 1, "n_seeds": 2, "n_permutations": 2, "n_random": 2}
TRAINED = ["single-layer", "classic", "transformer"]
OTHERS = ["bert", "gpt2-classifier", "llama"]


def probed(model, data=DATA, tests=None, train=TRAIN, **settings):
    kinds = [probes()[tests]] if isinstance(tests, str) else probes().values()
    own = {field.name for kind in kinds for field in fields(kind)}
    settings = {name: value for name, value in QUICK.items() if name in own} | settings
    return heedful.probe(model, data, tests, train=train, progress=None, **settings)


@cache
def report(kind):
    return probed(model_of(kind))


@pytest.mark.parametrize("name", NAMES)
def test_a_probe_says_what_it_asks_shows_and_does_not_show(name):
    kind = probes()[name]
    assert kind.question.endswith("?")
    assert kind.use in get_args(AttentionUse)
    assert "arXiv:" in kind.source or re.search(r"\b(19|20)\d\d\b", kind.source)
    for text in (kind.shows, kind.does_not_show):
        assert text.endswith(".")
        assert "  " not in text
        assert text[0].isupper()
    # What does not follow is longer than a disclaimer, and names a reason.
    assert len(kind.does_not_show.split()) >= 20
    assert kind.__doc__
    assert kind.__module__.endswith(name.replace("-", "_"))


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_a_default_and_is_explained(name):
    kind = probes()[name]
    for field in fields(kind):
        assert field.default is not MISSING
        assert f"`{field.name}" in kind.__doc__
    kind()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", TRAINED)
def test_every_probe_runs_on_a_model_that_is_trained_here(kind, name):
    outcome = report(kind)[name]
    assert outcome.refusal == "" or probes()[name].retrains
    assert outcome.answer in get_args(Answer)
    if outcome.result is None:
        # It says why, and what would be needed.
        assert outcome.refusal.endswith(".")
        return
    assert outcome.result.why.endswith(".")
    assert outcome.result.findings
    for finding in outcome.result.findings:
        value, null = finding.value, finding.null
        assert np.isfinite(value.value)
        assert np.isnan(value.low) or value.low - 1e-9 <= value.value <= value.high + 1e-9
        assert null is None or finding.null_is
    json.dumps(outcome.as_dict(), allow_nan=False)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_call_gives_the_same_result(name):
    model = model_of("classic")
    first, second = (repr(probed(model, tests=name).as_dict()) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("family", OTHERS)
def test_every_other_family_runs_or_refuses_in_a_sentence(family):
    data = DATA if len(build(family).classes) == 3 else [text for text, _ in DATA]
    outcomes = probed(build(family), data[:2]).outcomes
    ran = {outcome.probe.name for outcome in outcomes if outcome.result is not None}
    assert ran == {
        name for name in NAMES if not (probes()[name].trains if isinstance(data[0], str) else probes()[name].retrains)
    }
    for outcome in outcomes:
        assert outcome.result is not None or re.search("train", outcome.refusal)


@pytest.mark.parametrize("name", NAMES)
def test_models_without_attention_of_one_text_are_refused_in_a_sentence(name):
    function = heedful.wrap(lambda texts: np.array([[len(text), 1.0] for text in texts]), classes=["long", "short"])
    scores = heedful.wrap(build("torch").network, _split, classes=["bad", "good"], returns="scores")
    both = [PAIR, heedful.Pair("a bad plot", "dull")]
    for model, data in ((function, DATA), (scores, DATA), (build("t5"), both)):
        with pytest.raises(HeedfulError) as refused:
            probed(model, data, tests=name)
        assert str(refused.value).endswith(".")
        assert "\n" not in str(refused.value)


def _split(text):
    return [(1, 0, len(text))]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", [[("good", 0), ("film", 1)], [("good film .", 0), ("a film .", 0)]])
def test_texts_of_one_word_and_of_one_class_end_in_a_sentence(name, data):
    if probes()[name].trains:
        # With texts of another kind to train on, nothing is missing; with these alone, another class is.
        with pytest.raises(HeedfulError, match=r"give texts with labels of at least two classes[^\n]*\.$"):
            probed(model_of("single-layer"), data, tests=name, train=[(f"{text} .", 0) for text, _ in data])
    outcome = probed(model_of("single-layer"), data, tests=name)[name]
    assert outcome.result is not None
    assert outcome.result.why.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_one_head_is_enough(name):
    model = model_of("single-layer", n_heads=1, n_classes=2)
    data = [(text, label % 2) for text, label in DATA]
    outcome = probed(model, data, tests=name, train=[(text, label % 2) for text, label in TRAIN])[name]
    assert outcome.result is not None
