import numpy as np

from heedful.render.palette import GREEN, RED, blend, strengths

WHITE = (255, 255, 255)


def test_no_strength_is_the_paper_and_more_strength_is_nearer_the_ink():
    assert blend(0.0, WHITE) == WHITE
    for sign, ink in ((1, GREEN), (-1, RED)):
        far = [sum(abs(a - b) for a, b in zip(blend(sign * s, WHITE), ink, strict=True)) for s in (0.1, 0.5, 1.0)]
        assert far[0] > far[1] > far[2]


def test_strengths_use_the_whole_range_and_keep_signs():
    assert strengths(np.array([1.0, -4.0, 0.0])).tolist() == [0.25, -1.0, 0.0]
    assert strengths(np.zeros(3)).tolist() == [0, 0, 0]
