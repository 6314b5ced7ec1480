import io

import pytest
from rich.console import Console

import heedful
from heedful.render.palette import blend
from heedful.render.terminal import print_result


def printed(result, **settings):
    console = Console(file=io.StringIO(), **{"width": 160, **settings})
    print_result(result, console)
    return console.file.getvalue()


def test_a_strip_a_method_with_its_columns(tiny):
    comparison = heedful.compare(tiny, "good film was dull", n_samples=200)
    lines = printed(comparison, force_terminal=True, color_system="truecolor").splitlines()
    for explanation in comparison.explanations:
        line = next(line for line in lines if line.strip().startswith(explanation.method + " "))
        assert (" yes " if explanation.signed else " no ") in line
        assert "dull" in line


@pytest.mark.parametrize("width", [50, 80, 160])
def test_strips_fit_any_width(tiny, width):
    comparison = heedful.compare(tiny, "good film was dull " * 3, n_samples=100)
    text = printed(comparison, force_terminal=True, color_system=None, width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "lime" in text


def test_tints_follow_the_scores(tiny):
    explanation = heedful.explain(tiny, "good film was dull", "leave-one-out", target=1)
    text = printed(explanation, force_terminal=True, color_system="truecolor")
    strongest, score = explanation.top(1)[0]
    red, green, blue = blend(1.0 if score > 0 else -1.0, (255, 255, 255))
    assert f"48;2;{red};{green};{blue}m{strongest}" in text


def test_without_colour_the_numbers_are_printed(tiny):
    explanation = heedful.explain(tiny, "good film was dull", "leave-one-out", target=1)
    unit, score = explanation.top(1)[0]
    assert f"{unit} {score:+.2g}" in printed(explanation, color_system=None)


def test_an_escape_sequence_in_the_text_does_not_reach_the_terminal(tiny):
    explanation = heedful.explain(tiny, "good \x1b]0;owned\x07 film", "leave-one-out")
    assert "\x1b]0" not in printed(explanation, force_terminal=True, color_system="truecolor")
    assert "\x1b]0" not in printed(explanation, color_system=None)


def test_a_sampled_number_is_never_called_exact(tiny):
    from dataclasses import replace

    sampled = heedful.explain(tiny, "good film was dull", "lime", n_samples=50)
    text = printed(replace(sampled, error=sampled.error * 0))
    assert "exact" not in text
    assert "± 0" in text
