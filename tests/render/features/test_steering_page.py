import re
from io import StringIO

from rich.console import Console

import heedful
from heedful.render.features.steering_page import print_steering, steering_page
from tests.features.steerings import steering_of

HIGH, MIDDLE, LOW = [20.0, 22, 18, 21, 19, 20], [3.0, 4, 2, 3, 3, 3], [0.0] * 6


def test_the_page_has_the_verdict_every_mean_and_its_interval():
    steering = steering_of(HIGH, MIDDLE, LOW, surprise=2.0)
    page = steering_page(steering)
    assert steering.verdict in page
    change = steering.change("words")
    assert f"+20 [{change.low:+.3g}, {change.high:+.3g}]" in page
    assert "7.39<small>×2.72</small>" in page
    assert "feature − difference in means" in page
    assert "cosine with the feature +0.25" in page
    assert "Effect and cost by strength" not in page


def test_labelled_words_are_marked_and_texts_are_escaped():
    page = steering_page(steering_of(HIGH, MIDDLE, LOW))
    assert len(re.findall(r"<mark[^>]*>happy</mark>", page)) == 4 * 3
    assert "&lt;b&gt;" in page
    assert " <b> end" not in page
    many = steering_page(steering_of(HIGH * 5, MIDDLE * 5, LOW * 5))
    assert "The first 20 of 30 prompts." in many


def test_the_curves_name_the_strengths_and_follow_the_page_colours():
    page = steering_page(steering_of(HIGH, MIDDLE, LOW, curve=(0.5, 2.0)))
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) == 3
    assert all(label in charts[0] for label in (">1x<", ">2x<", ">4x<", "currentColor"))
    assert steering_page(steering_of(HIGH, MIDDLE, LOW, curve=(0.5, 2.0))) == page


def test_it_is_shown_in_a_terminal_and_a_notebook():
    steering = steering_of(HIGH, MIDDLE, LOW)
    stream = StringIO()
    print_steering(steering, Console(file=stream, width=160))
    assert "more than both controls" in stream.getvalue()
    assert "random direction" in stream.getvalue()
    assert "<html" not in steering._repr_html_()
    heedful.show(steering)
