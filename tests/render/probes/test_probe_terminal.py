import io
from dataclasses import replace

import pytest
from rich.console import Console

from heedful.render.probes.probe_terminal import print_probes
from tests.render.probes.planted_reports import REFUSAL, RESULTS, planted_probes
from tests.render.reports import NASTY


def printed(report, width=120):
    console = Console(file=io.StringIO(), width=width)
    print_probes(report, console)
    return console.file.getvalue()


def row_of(text, start):
    (line,) = [line for line in text.splitlines() if line.strip().startswith(f"{start} ")]
    return line


def test_every_use_has_its_answer_and_the_probes_that_it_rests_on():
    text = printed(planted_probes())
    assert "✓ yes " in row_of(text, "Saying that attention matters")
    assert row_of(text, "Saying that attention matters").split()[-2:] == ["permuted", "✓"]
    only = row_of(text, "As the only explanation")
    assert "✗ no" in only
    assert only.rstrip().endswith("adversarial ✗")
    assert "? not decided   no probe ran" in row_of(text, "As an explanation that cannot be faked")
    assert "Reading the sign" not in text


def test_every_probe_has_its_answer_and_its_sentence():
    text = printed(planted_probes())
    for name, answer in (("permuted", "✓ yes"), ("agreement", "◐ in part"), ("head-removal", "? not decided")):
        assert f"{answer}. {RESULTS[name].why}" in row_of(text, name)
    assert f"– did not run. {REFUSAL}" in row_of(text, "deceived")


def test_notes_of_the_run_follow():
    assert printed(planted_probes()).splitlines()[-1] == "Note: All planted."


@pytest.mark.parametrize("width", [60, 80])
def test_a_report_of_every_probe_fits_a_narrow_terminal(width):
    lines = printed(planted_probes(), width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) < 60


def test_text_of_the_user_cannot_write_to_the_terminal():
    text = printed(replace(planted_probes(), dataset=NASTY, notes=(NASTY,)))
    assert "\x1b" not in text
    assert "\u202e" not in text
