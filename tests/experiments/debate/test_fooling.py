import numpy as np
import pytest

import heedful
from heedful.experiments.debate.fooling import ABSENCES, METHODS, ON_DATA, Fooling
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return Fooling().measure(Workspace(tmp_path_factory.mktemp("fooling")))


def share(numbers, **where):
    rows = [row for row in numbers["first"] if where.items() <= row.items()]
    return np.mean([row["biased"] for row in rows]), np.mean([row["innocuous"] for row in rows])


def test_the_bias_is_first_until_it_is_hidden_and_exchanging_words_shows_it_again(numbers):
    for absence in ABSENCES:
        for method in METHODS:
            assert share(numbers, absence=absence, method=method, model="biased") == (1, 0)
            biased, innocuous = share(numbers, absence=absence, method=method, model="scaffolded")
            assert biased < 0.3 < innocuous
    assert share(numbers, absence="replace", method=ON_DATA, model="scaffolded")[0] > 0.8


def test_the_check_finds_the_scaffold_of_replaced_words(numbers):
    low = {
        row["model"]: row["low"]
        for row in numbers["check"]
        if (row["absence"], row["what"]) == ("replace", "difference")
    }
    assert low["scaffolded"] > 0 >= low["biased"]


def test_each_table_is_read_by_the_claims_and_a_bias_that_stays_first_differs(numbers):
    assert [claim.verdict for claim in Fooling().claims(numbers)] == ["agrees"] * 4 + ["new"] * 2
    seen = {**numbers, "first": [{**row, "biased": True} for row in numbers["first"]]}
    assert [claim.verdict for claim in Fooling().claims(seen)][:4] == ["differs"] * 4


def test_every_bar_is_a_share_of_texts(numbers):
    axes = Fooling().draw(numbers)["first"].axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert len(names) == 12
    assert sum(patch.get_width() for patch in axes.patches) == pytest.approx(
        sum(
            sum(share(numbers, absence=a, method=m, model=o))
            for a in ABSENCES
            for m in (*METHODS, ON_DATA)
            for o in ("biased", "scaffolded")
        )
    )
    assert "fooling" in heedful.experiments()
