"""The page of a command has the options that the command has, and names no others."""

import re
import shlex

import pytest

from tools.command_pages import CONSOLE, FOLDER, OPTIONS, commands, first_page, options_of, page_of, renew

NAMES = sorted(commands())


def test_every_command_has_a_page_and_every_page_a_command():
    assert sorted(FOLDER.glob("*.md")) == sorted(map(page_of, NAMES))


@pytest.mark.parametrize("name", NAMES)
def test_the_table_of_a_page_is_that_of_the_command(name):
    page = page_of(name).read_text(encoding="utf-8")
    (table,) = [match for match in OPTIONS.findall(page) if match]
    assert table.strip() == options_of(commands()[name]).strip(), "run: python -m tools.command_pages"
    for parameter in commands()[name].params:
        assert all(f"`{option}`" in table for option in parameter.opts if option.startswith("-"))


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_page_have_output_and_name_commands(name):
    page = page_of(name).read_text(encoding="utf-8")
    lines = [line[2:] for block in CONSOLE.findall(page) for line in block.splitlines() if line.startswith("$ ")]
    assert any(line.startswith(f"heedful {name}") for line in lines)
    known = {start for known in NAMES for start in (known, known.split()[0])}
    assert all(shlex.split(line)[1] in known for line in lines if line.startswith("heedful "))
    assert not re.search(r"^\$ heedful .*\n```$", page, re.MULTILINE), "an example without output"


def test_a_page_is_renewed_where_it_is_not_written_by_hand(tmp_path):
    block = "```console\n$ printf 'a\\n\\n\\nb\\n' | tee new\n$ cat new\nold\n```"
    page = f"# T\n\n{block}\n\n## Options\n\nold\n\n## Errors\n\nkept\n"
    once = renew(page, commands()["list"], tmp_path)
    assert "$ cat new\na\n\nb\n```" in once
    assert "old" not in once
    assert once.endswith("\n\n## Errors\n\nkept\n")
    assert renew(once, commands()["list"], tmp_path) == once


def test_a_command_without_a_page_gets_one_from_its_help():
    page = first_page("list", commands()["list"])
    assert page.startswith("# heedful list\n\nPrint every method")
    assert "```console\n$ heedful list\n```" in page
    assert len(OPTIONS.findall(page)) == 1
