from types import SimpleNamespace
from typing import Any

from heedful.features.quality import Ratio
from studies.features.steering import labels, summary_of
from tests.families import build
from tests.features.steerings import steering_of


def described(feature, values, auroc=0.99, precision=0.9, aspect="token") -> Any:
    rule = SimpleNamespace(
        aspect=aspect, values=values, auroc=Ratio(auroc, 0.9, 1.0), precision=Ratio(precision, 0.5, 1.0)
    )
    return SimpleNamespace(feature=feature, rule=rule)


def test_features_are_chosen_by_labels_that_are_words_of_the_model_and_share_none():
    given = [
        described(0, ("good",), precision=0.5),
        described(1, ("plot", "Good")),
        described(2, ("bad",), auroc=0.8),
        described(3, ("bad",), aspect="previous token"),
        described(4, ("zebra",)),
        described(5, ("was", "."), precision=0.7),
        SimpleNamespace(feature=6, rule=None),
        described(7, ("very",), precision=0.2),
    ]
    texts = ["A good plot was a good plot, very good.", "It was bad."]
    chosen = labels(build("gpt2"), given, 2, 0.9, texts)
    assert [(own.feature, words) for own, words in chosen] == [(1, ["plot", "good"]), (5, ["was"])]
    assert [own.feature for own, _ in labels(build("gpt2"), given, 2, 0.9, ["It was very bad."])] == [5, 7]


def test_the_summary_counts_the_comparisons_in_which_both_controls_are_beaten():
    high, low = [20.0, 22, 18, 21, 19, 20], [0.0] * 6
    lines = summary_of([steering_of(high, low, low, curve=(0.5,)), steering_of(high, high, low)])
    assert "In 2 of 3 comparisons the feature is ahead of both controls." in lines[-2]
    assert lines[-5].endswith("| random direction |")
