"""Every Python block of the documentation runs."""

import re
from pathlib import Path

import pytest

import heedful
from heedful.explainers import Explainer, answer, ask

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_blocks(page):
    names = {}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, str(page), "exec"), names)
    return names


@pytest.mark.parametrize(
    "page", [p for p in PAGES if BLOCK.search(p.read_text(encoding="utf-8"))], ids=lambda p: p.name
)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


def test_the_method_of_the_contributing_page_is_a_method(tiny):
    names = run_blocks(ROOT / "CONTRIBUTING.md")
    (member,) = [value for value in names.values() if isinstance(value, type) and Explainer in value.__bases__]
    (explanation,) = answer(member(power=2.0), ask(tiny, ["good film"]))
    assert explanation.scores.tolist() == [16.0, 16.0]


def test_every_link_between_pages_leads_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert link.startswith("https://") or (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_method_and_metric_has_a_place_in_the_docs():
    pages = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/**/*.md"))
    assert [name for name in (*heedful.methods(), *heedful.metrics()) if f"`{name}`" not in pages] == []
