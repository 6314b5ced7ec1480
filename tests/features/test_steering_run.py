from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.features import steered_texts
from tests.families import build
from tests.features.random_dictionaries import random_dictionary

PROMPTS = [
    "the film was good .",
    "a very bad story",
    "the plot was",
    "a good film",
    "not a dull plot , but",
    "the actors",
]
WORDS = ["good", "bad", "plot", "very", "was"]
SETTINGS = {"words": WORDS, "max_new": 5, "strategy": "sampling", "progress": None, "curve": ()}


def test_the_same_seed_gives_the_same_result_and_another_one_another():
    dictionary = random_dictionary(build("gpt2"))
    one, same, other = (
        heedful.features.steer(dictionary, 3, PROMPTS, seed=seed, **SETTINGS).as_dict() for seed in (0, 0, 1)
    )
    assert one == same
    assert one["runs"][0]["texts"] != other["runs"][0]["texts"]


def test_a_stopped_run_is_resumed_with_the_same_result(tmp_path, monkeypatch):
    dictionary = random_dictionary(build("gpt2"))
    monkeypatch.setattr(steered_texts, "_AT_ONCE", 2)
    whole = heedful.features.steer(dictionary, 3, PROMPTS, **SETTINGS).as_dict()
    steps = []

    def stop(done, total):
        steps.append((done, total))
        if len(steps) == 5:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            heedful.features.steer(dictionary, 3, PROMPTS, out=tmp_path, **{**SETTINGS, "progress": stop})
        steps.clear()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*-0.0-*.json")}
    resumed = heedful.features.steer(dictionary, 3, PROMPTS, out=tmp_path, **SETTINGS).as_dict()
    assert resumed == whole
    assert len(times) == 3
    assert times == {path: path.stat().st_mtime_ns for path in times}
    with pytest.raises(BadInput, match="another run, which differs in prompts"):
        heedful.features.steer(dictionary, 3, PROMPTS[:3], out=tmp_path, **SETTINGS)


def test_a_run_of_another_computation_of_the_model_or_of_a_close_strength_is_another_run(tmp_path):
    dictionary = random_dictionary(build("gpt2"))
    settings = {**SETTINGS, "curve": (1.0000001,)}
    steered = heedful.features.steer(dictionary, 3, PROMPTS, out=tmp_path, **settings)
    assert steered.as_dict() == heedful.features.steer(dictionary, 3, PROMPTS, **settings).as_dict()
    with dictionary.clamp({5: 50.0}), pytest.raises(BadInput, match="another run, which differs in model"):
        heedful.features.steer(dictionary, 3, PROMPTS, out=tmp_path, **settings)


def test_examples_are_texts_or_a_pair_and_by_default_what_was_written(tmp_path):
    model = build("gpt2")
    dictionary = random_dictionary(model)
    texts = ["the film was good .", "a dull film ."]
    one = heedful.features.steer(dictionary, 3, PROMPTS, examples=texts, **SETTINGS)
    assert one.examples == "1 sentences with a labelled word and 1 without".replace("1 without", "1 without")
    pair = heedful.features.steer(dictionary, 3, PROMPTS, examples=(texts[:1], texts[1:]), **SETTINGS)
    assert pair.examples == "1 texts with the property and 1 without"
    assert pair.run("difference in means").texts == one.run("difference in means").texts
    (tmp_path / "p.txt").write_text("\n".join(PROMPTS), encoding="utf-8")
    from_file = heedful.features.steer(dictionary, 3, str(tmp_path / "p.txt"), examples=texts, **SETTINGS)
    assert from_file.as_dict() == one.as_dict()


def test_texts_of_one_word_have_no_repetition():
    result = heedful.features.steer(random_dictionary(build("gpt2")), 3, PROMPTS, **{**SETTINGS, "max_new": 1})
    assert np.isnan(result.change("repetition").value)
    assert result._repr_html_().count("not known") >= 4


def test_what_makes_no_sense_is_refused():
    model = build("gpt2")
    dictionary = random_dictionary(model)
    never = replace(dictionary, largest=torch.zeros(12))
    requests = [
        (dictionary, 3, [], {}, "There are no prompts"),
        (dictionary, 3, ["the film", " "], {}, "Prompt 2: The prompt is empty"),
        (dictionary, 3, ["a", "the film", "the film"], {}, "Prompts 2 and 3 are the same and would count twice"),
        (dictionary, 3, ["good film " * 40], {}, "Prompt 1: The prompt .*shorten"),
        (dictionary, 12, PROMPTS, {}, "features 0 to 11"),
        (never, 3, PROMPTS, {}, "Feature 3 was never active"),
        (dictionary, 3, PROMPTS, {"strength": 0}, "strength must be above 0"),
        (dictionary, 3, PROMPTS, {"strength": "0x"}, "strength must be above 0"),
        (dictionary, 3, PROMPTS, {"strength": -1.0}, "at least 0"),
        (dictionary, 3, PROMPTS, {"strength": "much"}, "at least 0"),
        (dictionary, 3, PROMPTS, {"model": build("llama")}, "belongs to the model"),
        (dictionary, 3, PROMPTS, {"words": ["zebra"]}, "No word of the label is a whole token"),
        (dictionary, 3, PROMPTS, {"curve": (0.0,)}, "curve is a list of numbers above 0"),
        (dictionary, 3, PROMPTS, {"max_new": 0}, "max_new must be"),
        (dictionary, 3, PROMPTS, {"seed": -1}, "seed must be"),
        (dictionary, 3, PROMPTS, {"strategy": "beam"}, "Beam search draws nothing"),
        (dictionary, 3, PROMPTS, {"strategy": "best"}, "There is no strategy 'best'"),
        (dictionary, 3, PROMPTS, {"examples": []}, "There are no examples"),
        (dictionary, 3, PROMPTS, {"examples": ["a dull film"]}, "No sentence of the examples"),
    ]
    for own, feature, prompts, settings, message in requests:
        with pytest.raises(BadInput, match=message):
            heedful.features.steer(own, feature, prompts, **{**SETTINGS, **settings})


def test_a_feature_that_was_never_active_can_be_held_at_a_number():
    dictionary = replace(random_dictionary(build("gpt2")), largest=torch.zeros(12))
    result = heedful.features.steer(dictionary, 3, PROMPTS, strength=2.0, **SETTINGS)
    assert result.strength() == "2"


def test_a_classifier_is_refused_with_what_measures_its_outputs():
    dictionary = random_dictionary(build("bert"))
    with pytest.raises(Unsupported, match=r"does not write text.*heedful\.features\.effect"):
        heedful.features.steer(dictionary, 3, PROMPTS, **SETTINGS)
