"""The study of features that decide a sentiment: which random sets stand beside them, and what is said."""

from copy import copy

import numpy as np
import pytest

import heedful
from heedful.features.ablation import Ablation
from heedful.features.activations import TextSource
from heedful.statistics.intervals import mean_intervals
from studies.features import sentiment
from studies.features.sentiment import (
    CONTROLS,
    activity,
    main,
    most_often,
    over_draws,
    per_token,
    random_sets,
    sentence_of,
    table_of,
)
from tests.families import TEXTS, build
from tests.features.random_dictionaries import random_dictionary

ABOUT = {"density": np.arange(60) / 100, "activation": np.arange(60)[::-1] / 10 + 1}
ALL = [*TEXTS, "a bad dull plot", "very good", "the actor was bright", "an unforgettable story"]


@pytest.mark.parametrize("control", CONTROLS)
def test_random_sets_are_other_active_features_near_in_what_is_matched(control):
    sets = random_sets([30, 40], ABOUT, control, 50, 0)
    assert sets == random_sets([30, 40], ABOUT, control, 50, 0) != random_sets([30, 40], ABOUT, control, 50, 1)
    assert len(sets) == 50
    assert all(len({*some}) == 2 and not {*some} & {0, 30, 40} for some in sets)
    firsts = [some[0] for some in sets]
    assert (min(firsts) >= 19 and max(firsts) <= 41) == (control != "active")


def test_activity_is_counted_over_the_tokens_of_the_texts():
    model = build("encoder")
    dictionary = random_dictionary(model, width=12, k=4)
    rows = np.concatenate([chunk_of(model, text) for text in ALL])
    active, about = dictionary.encode(rows), activity(dictionary, model, ALL)
    assert about["density"] == pytest.approx((active > 0).mean(axis=0))
    assert about["activation"] == pytest.approx(active.mean(axis=0), rel=1e-4, abs=1e-6)


def chunk_of(model, text):
    source = TextSource(model, 1, [text])
    source.rows_a_chunk = source.n_rows
    return source.chunk(0).numpy()


def ablation(own, others):
    """40 texts of which the first are wrong without the features, and other ones without each random set."""
    right = np.ones((2 + len(others), 40), dtype=bool)
    for run, n_wrong in enumerate((own, *others), start=1):
        right[run, :n_wrong] = False
    return Ablation((1,), ((2,),) * len(others), "the logit of positive", right.astype(float), right)


def test_the_sentence_says_more_only_with_an_interval_and_enough_draws():
    strong = {"active": ablation(20, [i % 3 for i in range(19)]), "density": ablation(20, [0, 1])}
    text = sentence_of(strong)
    assert "accuracy more than random features of the kind “any active features”" in text
    assert "not measurably more than random features of the kind “as often active”" in text
    assert "p = 0.050" in text
    assert "not measurably more" in sentence_of({"active": ablation(2, [2, 1, 3] * 7)})


def test_the_interval_over_draws_is_that_of_their_mean_changes():
    changes = np.array([-1, -2, 0, -3, -1, -4]) / 40
    low, high = mean_intervals(changes[None])
    result = ablation(20, [1, 2, 0, 3, 1, 4])
    assert tuple(over_draws(result)) == pytest.approx((changes.mean(), low[0], high[0]))
    assert f"| {over_draws(result)} |" in table_of({"active": result})


def test_the_features_that_are_active_most_often_are_the_last_control():
    density = np.array([0.1, 0.9, 0.5, 0.9, 0.2])
    assert most_often([1], density) == [3]
    assert most_often([1, 0], density) == [3, 2]
    sets = {"active": ablation(2, [2, 1])}
    expected = np.mean([density[list(each)].sum() for each in sets["active"].random])
    text = per_token([1, 0], sets, [3, 2], density)
    assert text == f"removed 1.00, any active features {expected:.2f}, most often active 1.40"


@pytest.mark.slow
def test_a_study_resumes_and_ends_with_the_same_report(tmp_path, monkeypatch, capsys):
    model = build("encoder")
    model = copy(model)
    model.classes = ("negative", "positive", "neutral")
    dictionary = random_dictionary(model, width=60, k=4)
    monkeypatch.setattr(heedful, "load", lambda _: model)
    monkeypatch.setattr(heedful.features, "load", lambda *_: dictionary)
    monkeypatch.setattr(sentiment, "sentences", lambda *_: (ALL, [0, 1, 1, 0, 1, 1, 0]))
    words = ["--out", str(tmp_path), "--features", "2", "--sets", "3", "--samples", "200"]
    main(words)
    report = (tmp_path / "report-size.md").read_bytes()
    steps = {path: path.read_bytes() for path in (tmp_path / "steps").iterdir()}
    next(path for path in steps if "without" in path.name).unlink()
    (tmp_path / "report-size.md").unlink()
    main(words)
    assert (tmp_path / "report-size.md").read_bytes() == report
    assert {path: path.read_bytes() for path in (tmp_path / "steps").iterdir()} == steps
    assert "as much activation" in capsys.readouterr().out
