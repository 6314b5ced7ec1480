import numpy as np
import pytest

from heedful.experiments.claim import column
from heedful.experiments.lectures.embeddings import Embeddings
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return Embeddings().measure(Workspace(tmp_path_factory.mktemp("embeddings"), text="a dull film , a dull plot"))


def test_equal_words_share_a_column_and_positions_do_not(numbers):
    rows = [np.array(column(numbers["coordinates"], "W_e", t=t)) for t in range(8)]
    assert np.array_equal(rows[1], rows[5])
    assert not np.array_equal(rows[1], rows[2])
    places = [tuple(column(numbers["coordinates"], "W_p", t=t)) for t in range(8)]
    assert len(set(places)) == 8


def test_the_sum_is_the_model_s_vector(numbers, paper):
    e = paper.embed([paper.encode("a dull film , a dull plot")])[0, 3].detach().numpy()
    assert column(numbers["coordinates"], "e", t=3) == pytest.approx(e[:32].tolist(), abs=1e-6)


def test_the_figure_shows_the_three_parts_and_the_claim_can_fail(numbers):
    axes = Embeddings().draw(numbers)["embeddings"].axes
    word, place, both = (axes[n].images[0].get_array() for n in range(3))
    assert np.allclose(word + place, both, atol=1e-6)
    assert [label.get_text() for label in axes[0].get_yticklabels()][1:3] == ["a", "dull"]
    assert Embeddings().claims(numbers)[0].verdict == "agrees"
    off = {**numbers, "sums": [{**row, "gap": 1.0} for row in numbers["sums"]]}
    assert Embeddings().claims(off)[0].verdict == "differs"
