"""The map of the sources is complete, and what it says can be run."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

import heedful
from tests.families import masked_model, network_of

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/sources.md"
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (works|background|later) \| (.+) \| (.+?) \|$", re.MULTILINE)
ROWS = {int(row[0]): row[1:] for row in ROW.findall(PAGE.read_text(encoding="utf-8"))}
QUICK = {
    number: [command for slow, command in re.findall(r"(\*slow\* )?`([^`]+)`", shown) if not slow]
    for number, (_, _, shown, _) in ROWS.items()
}


def test_every_row_of_the_sources_is_in_the_map_once():
    numbers = [int(row[0]) for row in ROW.findall(PAGE.read_text(encoding="utf-8"))]
    assert numbers == list(range(1, 146))


def test_a_row_that_works_names_what_shows_it_and_its_page():
    bare = [
        n for n, (_, state, shown, page) in ROWS.items() if state == "works" and ("`" not in shown or "](" not in page)
    ]
    assert bare == []


def test_only_studies_with_people_come_later():
    assert [number for number, (_, state, *_) in ROWS.items() if state == "later"] == [119, 120]


def headings(page):
    """The anchors of a page: its headings as mkdocs names them, and those that it names itself."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    own = [re.search(r"\{ #([\w-]+) \}", line) for line in lines]
    slugs = (re.sub(r"[^\w\s-]", "", re.sub(r"\{.*\}", "", line)).strip().lower() for line in lines)
    return {re.sub(r"[\s-]+", "-", slug) for slug in slugs} | {match[1] for match in own if match}


def test_every_page_and_heading_of_the_map_exists():
    missing = []
    for page, _, anchor in re.findall(r"\]\(([\w/-]+\.md)(#([\w-]+))?\)", PAGE.read_text(encoding="utf-8")):
        path = ROOT / "docs" / page
        if not path.exists() or (anchor and anchor not in headings(path)):
            missing.append(f"{page}#{anchor}")
    assert missing == []


def test_every_slow_command_of_the_map_has_a_command_and_experiments_that_exist(heedful_command):
    for number, (_, _, shown, _) in ROWS.items():
        for command in re.findall(r"\*slow\* `heedful ([^`]+)`", shown):
            name, *words = shlex.split(command)
            assert heedful_command(name, "--help")[0] == 0, number
            if name == "reproduce":
                named = " ".join(words).partition(" --")[0].split()
                assert set(named) <= set(heedful.experiments()), number
        for script in re.findall(r"`python (examples/[\w.]+)", shown):
            assert (ROOT / script).exists(), number


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    """A folder with the examples and one tiny model of every kind that the map names."""
    folder = tmp_path_factory.mktemp("sources")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name in sorted(set(re.findall(r"\bmy-([\w-]+)", "".join(shown for _, _, shown, _ in ROWS.values())))):
        for part in masked_model() if name == "masked" else network_of(name):
            part.save_pretrained(folder / f"my-{name}")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("number", [number for number, commands in QUICK.items() if commands])
def test_the_quick_commands_of_a_row_run(number, desk, heedful_command, monkeypatch, tmp_path):
    for entry in desk.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    monkeypatch.chdir(tmp_path)
    for command in QUICK[number]:
        if command.startswith("heedful "):
            code, printed, error = heedful_command(*shlex.split(command)[1:])
            assert (code, bool(printed)) == (0, True), f"{command}: {error}"
        else:
            names = {name: heedful.load(name) for name in ("paper", "reviews", "writer") if name in command}
            assert eval(command, {"heedful": heedful, **names}) is not None, command
