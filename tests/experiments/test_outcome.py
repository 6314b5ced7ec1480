import pytest

from heedful.errors import BadInput
from heedful.experiments.claim import Claim
from heedful.experiments.outcome import Outcome, count_verdicts, read_outcome

OUTCOME = Outcome(
    "lemma-d4",
    "mathematics",
    "A title",
    "a source",
    "About it.",
    quick=True,
    device="NVIDIA H100",
    seconds=1.5,
    claims=(Claim("a", "1", "1", "agrees", "Why."), Claim("b", "", "2", "new", "Why.")),
    figures=("one", "two"),
    tables={"rows": 3},
    seed=4,
    text="two words",
)


def test_what_is_written_is_read_back(tmp_path):
    OUTCOME.write(tmp_path)
    assert read_outcome(tmp_path) == OUTCOME
    assert read_outcome(tmp_path / "elsewhere") is None


@pytest.mark.parametrize("content", ["{", "{}", '{"claims": [], "figures": [], "colour": 1}'])
def test_a_damaged_file_is_refused(tmp_path, content):
    (tmp_path / "outcome.json").write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=r"outcome\.json is damaged"):
        read_outcome(tmp_path)


def test_the_command_repeats_the_experiment():
    assert OUTCOME.command == "heedful reproduce lemma-d4 --quick --device cuda --seed 4 --text 'two words'"


def test_verdicts_are_counted_over_outcomes():
    assert count_verdicts([OUTCOME, OUTCOME]) == {"agrees": 2, "new": 2}
