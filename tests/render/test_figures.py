import numpy as np
import pytest
from matplotlib.patches import Rectangle

import heedful
from heedful.errors import BadInput
from heedful.render.figures import draw_head_maps, draw_strips
from heedful.render.palette import blend, strengths


def test_strips_hold_every_word_in_its_tint(tiny):
    comparison = heedful.compare(tiny, "good film was dull", ["lime", "attention-mean"], n_samples=200, ridge=0.0)
    (axes,) = draw_strips(comparison.explanations).axes
    legend, *texts = [text.get_text() for text in axes.texts]
    assert legend.startswith(f"f = {comparison['lime'].output:+.4f}, the logit of")
    assert texts[-10:] == ["lime", "good", "film", "was", "dull", "attention-mean", "good", "film", "was", "dull"]
    tints = [patch.get_facecolor()[:3] for patch in axes.patches if isinstance(patch, Rectangle)]
    expected = [blend(s, (255, 255, 255)) for e in comparison.explanations for s in strengths(e.scores)]
    assert np.allclose(tints, np.array(expected) / 255, atol=1e-6)


def test_the_caption_of_a_short_text_fits_and_says_only_what_the_colours_say(tiny):
    figure = draw_strips([heedful.explain(tiny, "good", "attention-mean")])
    figure.draw_without_rendering()
    (axes,), (width, _) = figure.axes, figure.get_size_inches() * figure.dpi
    boxes = [text.get_window_extent() for text in axes.texts]
    assert min(box.x0 for box in boxes) > 3
    assert max(box.x1 for box in boxes) < width - 3
    assert "no sign" in axes.texts[0].get_text()
    assert "against" not in axes.texts[0].get_text()


def test_head_maps_show_each_head_s_matrix(tiny):
    comparison = heedful.compare(tiny, "good film", ["attention-mean"])
    figure = draw_head_maps(comparison)
    assert len(figure.axes) == 3
    for axes, matrix in zip(figure.axes, comparison.maps[0], strict=True):
        assert np.allclose(axes.images[0].get_array(), matrix[:, :3])


def test_a_model_without_attention_has_no_maps(tiny):
    from dataclasses import replace

    with pytest.raises(BadInput, match="has no attention"):
        draw_head_maps(replace(heedful.compare(tiny, "good film", ["random"]), maps=None))
