"""The study of features that decide a sentiment: the control that is active most often, and what is said."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.features.ablation import Ablation
from studies.features import sentiment
from studies.features.sentiment import beside, main, most_often, report
from tests.families import TEXTS, build
from tests.features.random_dictionaries import random_dictionary

ALL = [*TEXTS, "a bad dull plot", "very good", "the actor was bright", "an unforgettable story"]


def with_densities(*densities):
    dictionary = random_dictionary(build("encoder"), width=len(densities))
    return replace(dictionary, density=torch.tensor(densities))


def ablation(features, own, others):
    """40 texts of which the first are wrong without the features, and other ones without each random set."""
    right = np.ones((2 + len(others), 40), dtype=bool)
    for run, n_wrong in enumerate((own, *others), start=1):
        right[run, :n_wrong] = False
    return Ablation(features, ((2,),) * len(others), "the logit of positive", right.astype(float), right)


def test_the_features_that_are_active_most_often_are_the_last_control():
    dictionary = with_densities(0.125, 0.875, 0.5, 0.875, 0.25)
    assert most_often(dictionary, [1]) == [3]
    assert most_often(dictionary, [1, 0]) == [3, 2]


def test_the_report_has_both_controls():
    one, other = ablation((1,), 20, [i % 3 for i in range(19)]), ablation((3,), 5, [0])
    assert beside(one, other).random == ((3,),)
    assert beside(one, other).changes("accuracy")[2].value == pytest.approx(20 / 40 - 5 / 40)
    text = report(one, other, with_densities(0.125, 0.875, 0.5, 0.75, 0.25))
    assert "accuracy 1.000, without features 1 0.500, without 3, which are active most often, 0.875" in text
    assert "changes accuracy more than removing random ones" in text
    assert "0.88 of the features, 0.50 of those drawn, 0.75 of those" in text
    assert text.count("\n| a") == 4


@pytest.mark.slow
def test_a_study_ends_with_a_report(tmp_path, monkeypatch, capsys):
    model = copy(build("encoder"))
    model.classes = ("negative", "positive", "neutral")
    dictionary = random_dictionary(model, width=60, k=4)
    monkeypatch.setattr(heedful, "load", lambda _: model)
    monkeypatch.setattr(heedful.features, "load", lambda *_: dictionary)
    monkeypatch.setattr(sentiment, "sentences", lambda *_: (ALL, [0, 1, 1, 0, 1, 1, 0]))
    main(["--out", str(tmp_path), "--features", "2", "--sets", "3", "--samples", "200"])
    assert "too few for a verdict" in (tmp_path / "report.md").read_text()
    assert "mean |score|" in capsys.readouterr().out
