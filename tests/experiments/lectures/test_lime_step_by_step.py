import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

from heedful.experiments.claim import column
from heedful.experiments.lectures.lime_step_by_step import TEXT, LimeStepByStep
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return LimeStepByStep().measure(Workspace(tmp_path_factory.mktemp("lime")))


def test_every_sample_has_the_package_s_weight_and_the_model_s_output(numbers, paper):
    words = list(dict.fromkeys(TEXT.split()))
    for row in numbers["samples"]:
        kept = np.array([[float(word in row["text"].split()) for word in words]])
        assert kept.sum() == len(words) - row["removed"]
        # As lime 0.2.0.1 does it: scikit-learn's cosine distance times 100, kernel width 25.
        distance = 100 * pairwise_distances(kept, np.ones((1, len(words))), metric="cosine")[0, 0]
        assert np.isclose(row["weight"], np.exp(-(distance**2) / 25**2) ** 0.5)
        assert np.isclose(row["answer"], paper([row["text"]])[0, 1])
    assert numbers["samples"][0]["text"] == TEXT


def test_the_pictures_show_the_numbers(numbers):
    drawn = LimeStepByStep().draw(numbers)
    texts = [text.get_text() for text in drawn["samples"].axes[0].texts]
    assert all(row["text"] in texts for row in numbers["samples"])
    (axes,) = drawn["coefficients"].axes
    widths = [bar.get_width() for bar in axes.patches]
    assert np.allclose(widths, sorted(column(numbers["coefficients"], "lime")))
    names = [label.get_text() for label in axes.get_yticklabels()]
    held = {row["word"] for row in numbers["anchor"] if row["in the anchor"]}
    assert {name.removesuffix(" ⚓") for name in names if "⚓" in name} == held


def test_the_claims_hold_and_can_fail(numbers):
    assert [claim.verdict for claim in LimeStepByStep().claims(numbers)] == ["agrees", "new", "new"]
    upside = [{**row, "weight": 1 - row["weight"]} for row in numbers["samples"]]
    none = [{**row, "in the anchor": False} for row in numbers["anchor"]]
    claims = LimeStepByStep().claims({**numbers, "samples": upside, "anchor": none})
    assert [claim.verdict for claim in claims] == ["differs", "new", "new"]
    assert claims[2].ours.startswith("none")
