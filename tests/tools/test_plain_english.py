"""The lint finds every word that the glossary bans, at its line, and nothing else."""

from pathlib import Path

import pytest

from tools.plain_english import check_code, check_text, files_of, main

PATH = Path("page.md")


@pytest.mark.parametrize(
    "text",
    [
        "Thinned texts were read.",
        "It is not told apart from it.",
        "which tells the two apart",
        "a stand-in for the word",
        "what stands in its place",
        "the line through all answers",
        "who else is on trial",
        "in court",
        "the mended equation",
        "how sure the report is",
        "with more effort",
        "It asks 500 masks.",
        "before the masks are asked",
        "answers to masks",
        "what the model said",
        "a source of chance",
        "for want of a reason",
        "all there is to know of one",
        "While it lasts the hook is on.",
        "made-up texts",
        "LIME is held against the theorem",
        "200 texts were asked for",
        "The explanation was read in.",
        "a word that speaks against it",
        "equal but for rounding",
        "the model has no room for more",
        "attention taken apart",
        "This is put to the test.",
        "if the data are at hand",
        "a label that is no class",
        "the picture survives",
        "one number a unit",
    ],
)
def test_every_banned_phrase_is_found(text):
    (finding,) = check_text(PATH, text)
    assert finding.word in text


@pytest.mark.parametrize(
    "text",
    [
        "the masked text, evaluated on 500 masks",
        "apart from the first, standing in front",
        "a line through the origin",
        "recommended, amended, of course",
        "better than chance, beyond chance",
        "This takes 3 minutes.",
        "industrial",
        "weights were read in single precision",
        "There is no class 3.",
        "a number and a unit",
    ],
)
def test_plain_sentences_pass(text):
    assert list(check_text(PATH, text)) == []


def test_a_phrase_is_found_across_lines_and_at_its_line():
    (finding,) = check_text(PATH, "One.\nIt is not told\n    apart.", first_line=5)
    assert (finding.line, finding.word) == (6, "told apart")


def test_strings_comments_and_bound_names_of_code_are_checked():
    source = '''"""How sure."""
# thinned
def mended(effort):
    found = f"{effort} on trial"
    return found, "effort" not in {}
'''
    lines = sorted((finding.line, finding.word) for finding in check_code(Path("a.py"), source))
    assert lines == [
        (1, "How sure"),
        (2, "thinned"),
        (3, "effort"),
        (3, "mended"),
        (4, "found"),
        (4, "on trial"),
        (5, "effort"),
    ]


def test_generated_pages_are_left_out_and_findings_set_the_exit_code(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tools.plain_english.ROOT", tmp_path)
    (tmp_path / "docs" / "reproduced").mkdir(parents=True)
    for name in ("docs/page.md", "docs/gallery.md", "docs/reproduced/report.html", "docs/image.svg"):
        (tmp_path / name).write_text("how sure")
    assert [path.name for path in files_of([tmp_path / "docs"])] == ["page.md"]
    monkeypatch.setattr("sys.argv", ["plain_english", str(tmp_path / "docs")])
    with pytest.raises(SystemExit, match="1"):
        main()
    assert "docs/page.md:1: 'how sure'; write: 95 % confidence interval" in capsys.readouterr().out
    (tmp_path / "docs" / "page.md").write_text("plain")
    with pytest.raises(SystemExit, match="0"):
        main()
