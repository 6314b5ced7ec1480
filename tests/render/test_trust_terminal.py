import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

import heedful
from heedful.document.note import Note
from heedful.errors import BadInput
from heedful.render import show, write
from heedful.render.trust_terminal import print_report
from tests.render.reports import METHODS, NASTY, column, planted, renamed


def printed(report, width=140, **settings):
    console = Console(file=io.StringIO(), width=width, **settings)
    print_report(report, console)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def report():
    return planted(run_notes=(Note("All texts are planted."),))


def rows_of(text, method):
    return [line for line in text.splitlines() if line.strip().startswith(f"{method} ") and re.search(r"\d", line)]


def test_every_mean_is_in_the_row_of_its_method(report):
    text = printed(report)
    low, high = report.intervals
    for row, method in enumerate(METHODS):
        (line,) = rows_of(text, method)
        means = [float(number) for number in re.findall(r"(-?\d+\.\d+) \[", line)]
        expected = [value for value in report.means[row] if value == value]
        assert means == pytest.approx(expected, abs=0.005)
        for ends, pattern in ((low, r"\[(-?\d+\.\d+),"), (high, r", (-?\d+\.\d+)\]")):
            written = [float(number) for number in re.findall(pattern, line)]
            assert written == pytest.approx([end for end in ends[row] if end == end], abs=0.005)


def test_significant_cells_are_marked_as_better_or_worse(report):
    text = printed(report)
    assert rows_of(text, "good")[0].count("●") == 3
    assert rows_of(text, "poor")[0].count("○") == 3
    for method in ("same", "random"):
        assert not set("●○") & set(rows_of(text, method)[0])


def test_headings_say_which_way_is_better(report):
    text = printed(report)
    assert "deletion ↑" in text
    assert "sufficiency ↓" in text


def test_rows_start_with_the_best_and_the_control_is_separate(report):
    lines = printed(report).splitlines()
    places = {method: lines.index(rows_of("\n".join(lines), method)[0]) for method in METHODS}
    assert sorted(places, key=places.__getitem__) == ["good", "same", "poor", "random"]
    assert lines[places["random"] - 1].strip() == ""


def test_passes_and_time_are_in_the_row(report):
    assert rows_of(printed(report), "same")[0].split()[-2:] == ["1,000", "1,000"]
    assert rows_of(printed(report), "good")[0].split()[-2:] == ["10", "10"]


def test_verdicts_skips_notes_and_shares_follow(report):
    text = " ".join(printed(report).split())
    for verdict in report.verdicts:
        assert verdict.sentence in text
        assert f"(by {', '.join(verdict.metrics)})" in text
    assert "To rank words: use good;" in text
    assert text.count("needs signed scores") == 1
    assert "Note: All texts are planted." in text
    assert "300 for metrics (29,700 more from the cache)." in text


@pytest.mark.parametrize("width", [50, 80, 100])
def test_many_metrics_are_put_in_blocks_that_fit(width):
    names = [f"metric-number-{number}" for number in range(13)] + ["comprehensiveness", "deletion", "sufficiency"]
    report = planted(columns=tuple(column(name) for name in names), n_documents=4)
    text = printed(report, width)
    assert max(len(line) for line in text.splitlines()) <= width
    # Every block has the methods again, and no number is lost.
    numbers = [number for line in rows_of(text, "good") for number in re.findall(r"-?\d+\.\d+ (?:\[|—)", line)]
    assert len(numbers) == len(names)
    assert len(rows_of(text, "good")) == len(rows_of(text, "random")) > 1


def test_the_verdict_says_that_there_is_no_winner():
    report = planted(n_documents=2)
    assert "To rank words: no significant winner;" in printed(report)
    assert "There is no verdict" in printed(planted(columns=(column("gini"),)))


def test_names_and_reasons_cannot_steer_the_terminal(report):
    nasty = renamed(report, "good", NASTY)
    nasty = replace(nasty, run_notes=(Note(NASTY),), dataset=NASTY)
    text = printed(nasty, width=200)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<script>" in text


def test_causes_are_counted(report):
    measured = tuple(replace(result, causes={"sign lost": 2, "value typical": 1}) for result in report.measured)
    assert "sign lost (60), value typical (30)" in " ".join(printed(replace(report, measured=measured)).split())


def test_a_report_is_shown_like_an_explanation(report, capsys):
    show(report)
    assert "To rank words" in capsys.readouterr().out


def test_a_report_is_written_as_page_or_json(report, tmp_path):
    write(report, tmp_path / "r.html")
    write(report, tmp_path / "r.json")
    assert "Which explanation to believe" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert '"verdicts"' in (tmp_path / "r.json").read_text(encoding="utf-8")
    with pytest.raises(BadInput, match="must end in .html or .json; 'r.png'"):
        write(report, tmp_path / "r.png")


def test_a_real_report_of_a_model_is_printed(tiny):
    texts = ["good film was dull", "the story was very bad", "not good , not bad", "a bright plot and an actor"]
    report = heedful.trust(tiny, texts, ["attention-mean", "leave-one-out"], ["deletion", "evidence-against"], 4)
    text = printed(report)
    for row, method in enumerate(report.methods):
        (line,) = rows_of(text, method)
        first = float(re.findall(r"(-?\d+\.\d+) (?:\[|—)", line)[0])
        assert first == pytest.approx(report.means[row, 0], abs=0.06)
