import io

from rich.console import Console

import heedful
from heedful.render.causes import cause_lines
from heedful.render.comparison_page import comparison_page
from heedful.render.terminal import print_result
from tests.families import TEXTS, build
from tests.render.pages import Page

TEXT = "good film , not dull ! a very bad plot"


def printed(comparison):
    console = Console(file=io.StringIO(), width=400)
    print_result(comparison, console)
    return console.file.getvalue()


def test_a_comparison_prints_at_most_five_lines_of_causes(tiny):
    comparison = heedful.compare(tiny, TEXT, n_samples=50)
    lines = cause_lines(comparison.causes)
    assert lines[0] == "Why they differ (exact):"
    assert 2 <= len(lines) <= 5
    for line in lines:
        assert line in printed(comparison)


def test_a_diagnostic_is_called_one_and_shows_how_it_was_tested():
    comparison = heedful.compare(build("bert"), TEXTS[1], ["attention-mean", "gradient-x-input", "leave-one-out"])
    lines = cause_lines(comparison.causes)
    assert lines[0] == "Why they differ (a diagnostic, not a proof):"
    assert len(lines) <= 5
    assert "behaved as predicted when replaced" in lines[-1]
    html = comparison_page(comparison)
    assert "A diagnostic, not a proof" in html
    assert all(
        f"{test.behaved} of {test.diagnosed} behaved as predicted" in html for test in comparison.causes.reliability
    )


def test_the_page_shows_causes_terms_and_pairs(tiny):
    comparison = heedful.compare(tiny, TEXT, n_samples=50)
    html = comparison_page(comparison)
    assert "<h2>Why they differ</h2>" in html
    for cause in comparison.causes.causes[:3]:
        assert cause.name in html
    assert "From attention to gradient-x-input, term by term" in html
    assert "the lowest rank correlation ρ first" in html
    assert "Why they differ" not in comparison_page(heedful.explain(tiny, TEXT, "leave-one-out"))


def test_words_are_escaped_and_cannot_steer_the_terminal(tiny):
    comparison = heedful.compare(tiny, "good <script>x</script> \x1b[31m bad & film", n_samples=50)
    html = comparison_page(comparison)
    assert Page(html).count("script") == 2
    assert "<script>x" not in html
    assert "\x1b" not in html
    assert not any("\x1b" in line for line in cause_lines(comparison.causes))


def test_one_word_has_nothing_to_differ_about(tiny):
    comparison = heedful.compare(tiny, "good", ["attention-mean", "random"])
    assert "Why they differ" in comparison_page(comparison)
    assert len(cause_lines(comparison.causes)) <= 5
