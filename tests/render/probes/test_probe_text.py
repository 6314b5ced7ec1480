from math import nan

import pytest

from heedful.render.probes.probe_text import (
    NOT_RUN,
    answer_text,
    null_text,
    probed_texts,
    quantity_text,
    reason_text,
    use_rows,
    use_title,
)
from heedful.statistics.quantity import Quantity
from tests.render.probes.planted_reports import CHANGE, REFUSAL, REFUSED, TAU, planted_probes


def test_a_use_that_no_named_probe_judges_has_no_row():
    rows = use_rows(planted_probes(["agreement", REFUSED]))
    assert [row.use for row in rows] == ["Ranking words by importance", "As an explanation that cannot be faked"]


def test_a_row_has_every_probe_that_judges_its_use_and_knows_which_count():
    row = next(row for row in use_rows(planted_probes()) if "matters" in row.use)
    assert {outcome.probe.name: row.counts(outcome) for outcome in row.probes} == {
        "head-removal": False,
        "permuted": True,
    }


@pytest.mark.parametrize(
    ("use", "title"), [("reading the sign", "Reading the sign"), ("the only explanation", "As the only explanation")]
)
def test_a_use_begins_a_row(use, title):
    assert use_title(use) == title


def test_a_probe_that_did_not_run_says_why():
    outcome = planted_probes()[REFUSED]
    assert (answer_text(outcome), reason_text(outcome)) == (NOT_RUN, REFUSAL)


def test_a_number_has_the_interval_that_it_has():
    assert quantity_text(Quantity(0.4, 0.3, 0.5)) == "0.40 [0.30, 0.50]"
    assert quantity_text(Quantity(0.25)) == "0.25"
    assert quantity_text(Quantity(nan)) == "—"


def test_a_null_says_what_it_is():
    assert null_text(CHANGE) == "0, no change"
    assert null_text(TAU) == ""


def test_one_text_is_not_texts():
    assert probed_texts(planted_probes()) == "planted (test), 1,200 texts"
    assert probed_texts(planted_probes(n_texts=1)) == "planted (test), 1 text"
