from heedful.features.reading.describing import describe
from studies.features.steering import labelled, summary_of
from tests.families import TEXTS, build
from tests.features.random_dictionaries import random_dictionary
from tests.features.steerings import steering_of


def test_features_are_those_of_the_best_labels_with_words_that_are_tokens(monkeypatch):
    model = build("gpt2")
    descriptions = describe(random_dictionary(model, width=40), [*TEXTS, "a good plot"], progress=None)
    numbers = [own.feature for own in descriptions][:3]
    words = ("good", "zebra", "plot")
    rules = [{"feature": n, "rules": [{"values": [v, v.upper()]}]} for n, v in zip(numbers, words, strict=True)]
    monkeypatch.setattr("studies.features.steering.best_labels", lambda lines, n: rules[:n])
    assert [(own.feature, words) for own, words in labelled(model, descriptions, 3)] == [
        (numbers[0], ["good"]),
        (numbers[2], ["plot"]),
    ]


def test_the_summary_counts_the_comparisons_in_which_both_controls_are_beaten():
    high, low = [20.0, 22, 18, 21, 19, 20], [0.0] * 6
    lines = summary_of([steering_of(high, low, low, curve=(0.5,)), steering_of(high, high, low)])
    assert "In 2 of 3 comparisons the feature is ahead of both controls." in lines[-2]
    assert lines[-5].endswith("| random direction |")
