import json
import re
from dataclasses import replace
from math import e

import numpy as np
import pytest
from scipy import stats

from heedful.errors import BadInput
from heedful.features.labelled import Label
from heedful.features.steering import RANDOM
from tests.features.steerings import steering_of

LOW, MIDDLE, HIGH = ([base + change for change in (-2, -1, -1, 0, 0, 1, 1, 2)] for base in (1, 3, 20))
NONE = [0.0] * 8


def test_intervals_of_paired_changes_are_those_of_student_with_a_degree_of_freedom_less():
    before = np.array([4.0, 0, 2, 8, 1, 3, 5, 9])
    steering = steering_of(HIGH + before, MIDDLE + before, LOW + before, before)
    change = steering.change("words")
    # Symmetric values have no skewness, so Hall's interval is Student's.
    half = stats.t.ppf(0.975, 6) * np.std(HIGH, ddof=1) / np.sqrt(8)
    assert change == pytest.approx((20, 20 - half, 20 + half))
    lead = steering.lead("words", "difference in means")
    assert lead.value == pytest.approx(17)
    assert np.isnan(lead.low)


@pytest.mark.parametrize(
    ("feature", "means", "random", "sentence"),
    [
        (HIGH, MIDDLE, LOW, r"raises the labelled words per 100 words written by \+20 .*, more than both controls"),
        (HIGH, NONE, NONE, "more than both controls .*0 in every text with the difference in means"),
        (HIGH, HIGH, LOW, "more than the random direction, but not more than the difference in means"),
        (HIGH, LOW, HIGH, "more than the difference in means, but not more than the random direction"),
        (MIDDLE, HIGH, MIDDLE, "but not more than the controls"),
        ([-x for x in HIGH], NONE, NONE, "lowers the labelled words"),
        (LOW, NONE, NONE, "does not measurably raise"),
        (NONE, HIGH, NONE, r"does not measurably raise .*: \+0 in every text"),
        (HIGH[:4], NONE[:4], NONE[:4], "an interval needs at least 5 prompts, not 4"),
    ],
)
def test_the_verdict_says_what_the_intervals_show(feature, means, random, sentence):
    assert stats.t.ppf(0.975, 6) * np.std(LOW, ddof=1) / np.sqrt(8) > 1
    verdict = steering_of(feature, means, random).verdict
    assert verdict.startswith("Clamping feature 7 to 5 (2x its largest activation)")
    assert re.search(sentence, verdict), verdict


def test_overlapping_intervals_are_no_lead_though_the_means_differ():
    close = [value - 1.5 for value in HIGH]
    steering = steering_of(HIGH, close, LOW)
    assert steering.change("words").low < steering.change("words", "difference in means").high
    assert "not more than the difference in means" in steering.verdict


def test_perplexity_is_the_exponential_of_the_mean_surprise_and_part_of_the_verdict():
    steering = steering_of(HIGH, MIDDLE, LOW, surprise=2.0)
    assert steering.perplexity("feature") == pytest.approx(e**2)
    assert "Perplexity: 2.72 unchanged, 7.39 with the feature, 2.72 with the difference in means" in steering.verdict
    assert steering.notes == ()
    assert "its perplexity is 20 times that" in steering_of(HIGH, MIDDLE, LOW, surprise=4.0).notes[0]


def test_a_label_from_the_direction_itself_is_called_circular():
    label = Label(("happy", "zebra"), (1,), ("zebra",), "logit lens")
    first, second = steering_of(HIGH, MIDDLE, LOW, label=label).notes
    assert "partly circular" in first
    assert "No whole token of the model: zebra." in second
    assert "room" in replace(steering_of(HIGH, MIDDLE, LOW), cut_short=True).notes[0]


def test_a_control_without_a_value_is_not_beaten():
    result = steering_of([1.0, 2.0, 1.5, 1.2, 1.7, 1.4], [np.nan] * 6, [0.0] * 6)
    assert result.beaten("words") == (RANDOM,)


def test_a_run_or_measure_that_there_is_not_is_refused():
    steering = steering_of(HIGH, MIDDLE, LOW, curve=(0.4,))
    assert steering.factors == (0.4, 1.0)
    assert steering.change("words", factor=0.4).value == pytest.approx(8)
    for ask in (lambda: steering.run("feature", 3.0), lambda: steering.run("nowhere")):
        with pytest.raises(BadInput, match="There is no run"):
            ask()


def test_json_has_every_number_and_no_nan(tmp_path):
    steering = steering_of(HIGH, MIDDLE, LOW)
    steering.runs[1].values["repetition"][0] = np.nan
    steering.save(tmp_path / "s.json")
    text = (tmp_path / "s.json").read_text(encoding="utf-8")
    assert "NaN" not in text
    content = json.loads(text)
    assert content["runs"][1]["values"]["words"] == HIGH
    assert content["runs"][1]["values"]["repetition"][0] is None
    assert content["verdict"] == steering.verdict


def test_no_interval_goes_beyond_what_is_possible():
    steering = steering_of([100.0, 100, 100, 100, 100, 100, 100, 60], NONE, NONE)
    assert steering.change("words").high == 100
    assert steering.change("texts").high == 1
    assert steering.lead("repetition", "random direction").high == 1
