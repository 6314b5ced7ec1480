import numpy as np
import pytest

import heedful
from heedful.experiments.claim import column
from heedful.experiments.paper.figure_1 import PAPERS, Figure1
from heedful.experiments.reviews import FIGURE_1
from heedful.experiments.workspace import Workspace
from heedful.render.palette import blend, strengths


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return Figure1().measure(Workspace(tmp_path_factory.mktemp("figure-1")))


def test_every_method_that_fits_the_model_is_there(numbers, paper):
    fitting = {name for name, kind in heedful.methods().items() if kind.needs <= paper.offers and not kind.opt_in}
    assert {row["method"] for row in numbers["scores"]} == fitting
    assert [row["word"] for row in numbers["scores"][:7]] == FIGURE_1.split()


def test_the_strips_show_the_numbers(numbers):
    axes = Figure1().draw(numbers)["seven"].axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert texts[1:9] == ["α-avg", *FIGURE_1.split()]
    tints = np.array([patch.get_facecolor()[:3] for patch in axes.patches])
    expected = [
        blend(strength, (255, 255, 255))
        for method in PAPERS
        for strength in strengths(np.array(column(numbers["scores"], "score", method=method)))
    ]
    assert np.allclose(tints, np.array(expected) / 255, atol=1e-6)
    everyone = Figure1().draw(numbers)["all"].axes[0]
    assert len(everyone.patches) == len(numbers["scores"])


def test_scores_that_are_rounding_have_no_colour(numbers):
    axes = Figure1().draw({**numbers, "rounding": [{"method": "gradient-mean"}]})["seven"].axes[0]
    tints = np.array([patch.get_facecolor()[:3] for patch in axes.patches]).reshape(len(PAPERS), -1, 3)
    assert ((tints == 1).all(axis=(1, 2)) == [name == "G-avg" for name in PAPERS.values()]).all()
    assert any("G-avg: without colour" in text.get_text() for text in axes.texts)


def test_the_claims_are_the_caption_s_and_can_go_either_way(numbers):
    ours = Figure1().claims(numbers)
    scores = {method: column(numbers["scores"], "score", method=method) for method in PAPERS}
    assert ours[0].verdict == "agrees"
    against = {PAPERS[method] for method, own in scores.items() if own[6] < 0}
    assert set(ours[2].ours.split(", ")) == against
    assert ours[2].verdict == ("agrees" if against == {"G×I", "lime"} else "differs")

    def planted(row):
        """As the caption says: popular first for attention, questionable for all others, against it for two."""
        first = "popular" if row["method"].startswith("attention") else "questionable"
        size = {first: 3.0, "questionable": 2.0}.get(row["word"], 1.0)
        return {**row, "score": -size if row["method"] in ("lime", "gradient-x-input") else size}

    as_printed = {**numbers, "scores": [planted(row) for row in numbers["scores"]]}
    assert [claim.verdict for claim in Figure1().claims(as_printed)] == ["agrees"] * 4
    bent = [{**row, "score": -1.0 if row["method"] == "attention-mean" else row["score"]} for row in numbers["scores"]]
    assert Figure1().claims({**numbers, "scores": bent})[0].verdict == "differs"


def test_any_text_can_be_drawn(tmp_path):
    numbers = Figure1().measure(Workspace(tmp_path, text="a fine film , but far too long"))
    assert len(Figure1().claims(numbers)) == 1  # The caption is about its own sentence.
    assert {row["word"] for row in numbers["scores"]} == {"a", "fine", "film", ",", "but", "far", "too", "long"}
