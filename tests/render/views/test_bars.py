from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.render.views.bars import N_BARS, bars_view, draw_explanation, strongest_first


@pytest.fixture(scope="module")
def lime(paper):
    return heedful.explain(paper, "a dull film , but a bright and moving story", "lime", n_samples=100)


def test_bars_are_the_strongest_scores_with_their_intervals(lime):
    rows = strongest_first(lime)
    assert [(name, score) for name, score, _ in rows] == lime.top(N_BARS)
    view = bars_view(lime)
    low = min(0, (lime.scores - lime.error).min())
    width = max(0, (lime.scores + lime.error).max()) - low
    for bar, (_, score, error) in zip(view["bars"], rows, strict=True):
        ends = sorted((view["zero"], 100 * (score - low) / width))
        assert [bar["start"], bar["start"] + bar["width"]] == pytest.approx(ends)
        assert bar["low"] == pytest.approx(100 * (score - error - low) / width)
        assert bar["reach"] == pytest.approx(200 * error / width)


def test_scores_of_exactly_zero_have_no_bar(lime):
    some = replace(lime, scores=np.where(np.arange(len(lime.scores)) < 2, lime.scores, 0.0), error=None)
    assert len(strongest_first(some)) == 2
    assert bars_view(some)["title"].endswith(f"the 2 strongest of {len(lime.scores)}")
    assert len(strongest_first(replace(some, scores=0 * some.scores))) == len(lime.scores)


def test_the_picture_has_the_text_and_the_bars(lime, tmp_path):
    text, bars = draw_explanation(lime).axes
    assert {"dull", "moving"} <= {piece.get_text() for piece in text.texts}
    assert [bar.get_width() for bar in bars.patches][::-1] == pytest.approx([score for _, score in lime.top(N_BARS)])
    lime.save(tmp_path / "e.png")
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")


def test_an_exact_score_has_no_caps(lime):
    exact = replace(lime, error=np.where(np.arange(len(lime.scores)) < 2, lime.error, 0.0))
    (intervals,) = draw_explanation(exact).axes[1].containers[1:]
    assert len(intervals.lines[2][0].get_segments()) == 2
    assert len(draw_explanation(replace(lime, error=0 * lime.error)).axes[1].containers) == 1


def test_the_page_has_a_bar_for_each_word(lime, tmp_path):
    lime.save(tmp_path / "e.html")
    page = (tmp_path / "e.html").read_text(encoding="utf-8")
    assert page.count('class="track"') == len(lime.scores)
    assert page.count('class="reach"') == int((lime.error > 0).sum())
