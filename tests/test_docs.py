"""Every Python block of the documentation runs, every page is in the navigation, and the site builds."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zlib
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
import yaml

import heedful
from heedful.datasets import Dataset
from heedful.experiments import Experiment
from heedful.experiments.claim import Claim
from heedful.experiments.outcome import Outcome
from heedful.experiments.workspace import Workspace
from heedful.explainers import Explainer
from heedful.explainers.run import run_explainer
from heedful.metrics import Metric
from heedful.models.question import ask
from tools.gallery import update_gallery, write_gallery

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_blocks(page):
    names = {}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, str(page), "exec"), names)
    return names


def contributed(contract):
    """The class of this contract that the page on adding defines."""
    names = run_blocks(ROOT / "docs/adding.md")
    (member,) = [value for value in names.values() if isinstance(value, type) and contract in value.__bases__]
    return member


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The set_.* function:PendingDeprecationWarning")  # shap, when it is imported
@pytest.mark.parametrize(
    "page", [p for p in PAGES if BLOCK.search(p.read_text(encoding="utf-8"))], ids=lambda p: p.name
)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


@pytest.mark.slow
def test_the_commands_of_the_tutorial_run_and_its_first_one_is_on_the_first_pages(
    heedful_command, tmp_path, monkeypatch
):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    commands = {}
    for page in ("README.md", "docs/index.md", "docs/tutorial.md"):
        blocks = "".join(CONSOLE.findall((ROOT / page).read_text(encoding="utf-8")))
        commands[page] = [line for line in blocks.splitlines() if line.startswith("$ heedful ")]
    first, *_ = commands["docs/tutorial.md"]
    assert commands["README.md"] == commands["docs/index.md"] == [first]
    for command in commands["docs/tutorial.md"]:
        code, printed, error = heedful_command(*shlex.split(command)[2:])
        assert (code, bool(printed)) == (0, True), error
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("**/*.html")}
    assert written == {"comments.html", "comment.html", "trust-comments/report.html"}


def test_the_method_of_the_page_on_adding_is_a_method(tiny):
    (explanation,) = run_explainer(contributed(Explainer)(power=2.0), ask(tiny, ["good film"]))
    assert explanation.scores.tolist() == [16.0, 16.0]


def test_the_metric_of_the_page_on_adding_is_a_metric(tiny):
    texts = ["a very good film , not dull", "the plot was bad but the actor bright"]
    report = heedful.trust(tiny, texts, ["leave-one-out"], [contributed(Metric)()], target=1)
    changes = [np.abs(heedful.explain(tiny, text, "leave-one-out", target=1).scores).max() for text in texts]
    np.testing.assert_allclose(report.values[report.methods.index("leave-one-out"), 0], changes, rtol=1e-9)


def test_the_data_set_of_the_page_on_adding_is_a_data_set(tiny):
    weather = contributed(Dataset)()
    assert [weather.classes[example.label] for example in weather.examples("test")] == ["bad", "good"]
    (span,) = weather.examples("test")[1].rationale
    assert weather.examples("test")[1].text[slice(*span)] == "bright"


def test_the_experiment_of_the_page_on_adding_is_an_experiment(tmp_path):
    experiment = contributed(Experiment)()
    numbers = experiment.measure(Workspace(tmp_path))
    assert experiment.measure(Workspace(tmp_path, seed=1)) == numbers, "every round is a step that is kept"
    assert experiment.measure(Workspace(tmp_path / "other", seed=1)) != numbers
    shares = [row["share"] for row in numbers["rounds"]]
    assert experiment.draw(numbers)["shares"].axes[0].lines[0].get_ydata().tolist() == shares
    biased = {"rounds": [{**row, "share": row["share"] + 0.1} for row in numbers["rounds"]]}
    assert [experiment.claims(table)[0].verdict for table in (numbers, biased)] == ["agrees", "differs"]


def test_every_link_between_pages_has_a_target():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert link.startswith("https://") or (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_method_metric_and_probe_is_named_in_the_docs():
    pages = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/**/*.md"))
    assert [
        name for name in (*heedful.methods(), *heedful.metrics(), *heedful.probes()) if f"`{name}`" not in pages
    ] == []


def test_every_experiment_that_the_docs_name_exists():
    catalogue = heedful.experiments()
    for page in PAGES:
        for words in re.findall(r"heedful reproduce((?: [a-z][a-z0-9-]*)+)", page.read_text(encoding="utf-8")):
            assert [name for name in words.split() if name not in catalogue] == [], page.name


def test_every_file_and_module_that_the_docs_name_exists():
    new = ("word_length", "fair_coin", "a/b.py", "a/test_b.py")  # files that a reader is to write
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        files = re.findall(r"`((?:heedful|tests|benchmarks|studies|tools|examples)/[\w/.-]+)`", text)
        modules = re.findall(r"python -m ((?:benchmarks|studies|tools)[\w.]*)", text)
        paths = [*files, *(module.rstrip(".").replace(".", "/") for module in modules)]
        missing = [path for path in paths if not (ROOT / path).exists() and not (ROOT / f"{path}.py").exists()]
        assert [path for path in missing if not any(name in path for name in new)] == [], page.name


def test_every_page_is_in_the_nav_once():
    def pages(entries):
        for entry in entries:
            (inside,) = entry.values()
            yield from [inside] if isinstance(inside, str) else pages(inside)

    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    docs = ROOT / "docs"
    assert sorted(pages(nav)) == sorted(page.relative_to(docs).as_posix() for page in docs.glob("**/*.md"))


def test_the_architecture_page_names_every_folder_of_the_package_and_its_layers():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    folders = {init.parent.name for init in ROOT.glob("heedful/*/**/__init__.py")}
    modules = {path.name for path in ROOT.glob("heedful/*.py")} - {"__init__.py", "__main__.py"}
    assert [name for name in sorted({f"{name}/" for name in folders} | modules) if f"`{name}`" not in page] == []
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [rule["layers"] for rule in config["tool"]["importlinter"]["contracts"] if rule["type"] == "layers"]
    assert "".join(f"    {layer}\n" for layer in layers).replace("heedful.", "") in page


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it: warnings are errors, and a broken link or anchor is a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return folder


@pytest.mark.slow
def test_the_reference_has_every_public_name_and_every_member_of_a_catalogue(site):
    packed = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    documented = {line.split()[0] for line in zlib.decompress(packed).decode().splitlines()}
    folders = {"datasets", "experiments", "metrics"}
    expected = [f"heedful.{name}" for name in heedful.__all__ if name not in folders]
    for family in (heedful.methods(), heedful.metrics(), heedful.probes(), heedful.datasets(), heedful.experiments()):
        expected += [f"{member.__module__}.{member.__qualname__}" for member in family.values()]
    assert [name for name in expected if name not in documented] == []


def test_the_reference_shows_shapes_settings_and_class_variables(site):
    def shown(page):
        return unescape(re.sub(r"<[^>]+>", "", (site / page).read_text(encoding="utf-8")))

    assert 'Float[ndarray, "unit"]' in shown("reference/methods.html")
    assert "n_samples: Samples = 5000" in shown("reference/methods.html")
    assert "name: lime" in shown("reference/methods.html")
    assert "better: higher" in shown("reference/metrics.html")
    not_for = heedful.metrics()["gini"].not_for
    assert f"not for: {not_for}" in shown("reference/metrics.html"), "a constant of the file is looked up"
    assert "softmax(scores_i)_t values_{c,i,t}" in shown("reference/heedful.html"), "an underscore is not emphasis"


def test_the_report_is_reachable_from_the_site(site):
    assert 'href="reproduced/report.html"' in (site / "gallery.html").read_text(encoding="utf-8")
    assert (site / "reproduced/report.html").exists()


def test_the_site_and_its_search_can_be_read_without_a_server_or_a_network(site):
    assert (site / "search/search_index.js").read_text(encoding="utf-8").startswith("var __index = {")
    for page in ("index.html", "commands/trust.html"):
        loaded = re.findall(
            r'<(?:script|img|link)[^>]* (?:src|href)="([^"]+)"', (site / page).read_text(encoding="utf-8")
        )
        assert any(address.endswith("iframe-worker.js") for address in loaded)
        assert [address for address in loaded if not (site / page).parent.joinpath(address).exists()] == []


def planted_run(folder, svg_bytes=10):
    """A run of one experiment with one figure, whose texts contain Markdown characters."""
    claim = Claim("a | b *c*", "", "0.5 [0.4, 0.6]", "new", "<b> & `d`\nnext line")
    name = "figure-5"
    outcome = Outcome(name, "paper", "A title", "a source", "About it.", True, "cpu", 2.04, (claim,), ("one",))
    replace(outcome, seed=3, text="it's fine").write(folder / name)
    (folder / name / "one.svg").write_bytes(b"s" * svg_bytes)
    (folder / name / "one.png").write_bytes(b"p" * 1000)
    (folder / "report.html").write_text("a report", encoding="utf-8")
    return folder


def test_the_gallery_shows_a_run_and_how_it_was_made(tmp_path):
    docs = tmp_path / "docs"
    (docs / "reproduced").mkdir(parents=True)
    (docs / "reproduced/of-an-earlier-run.png").touch()
    assert write_gallery(planted_run(tmp_path / "run"), docs) == 10
    page = (docs / "gallery.md").read_text(encoding="utf-8")
    assert "the quick run" in page
    assert "on cpu" in page
    assert "### A title { #figure-5 }" in page
    assert "![A title: one](reproduced/figure-5-one.svg)" in page
    assert "`heedful reproduce figure-5 --quick --seed 3 --text 'it'\"'\"'s fine'`" in page
    assert sorted(path.name for path in (docs / "reproduced").iterdir()) == ["figure-5-one.svg", "report.html"]


def test_the_gallery_escapes_the_texts_of_a_claim(tmp_path):
    from markdown import markdown

    write_gallery(planted_run(tmp_path / "run"), tmp_path)
    page = markdown((tmp_path / "gallery.md").read_text(encoding="utf-8"), extensions=["tables", "attr_list"])
    cells = [re.sub(r"\s+", " ", cell) for cell in re.findall(r"<td>(.*?)</td>", page, re.DOTALL)]
    assert cells == [
        "a &#124; b &#42;c&#42;",
        "—",
        "0.5 &#91;0.4, 0.6&#93;",
        "new",
        "&lt;b&gt; &amp; &#96;d&#96; next line",
    ]


@pytest.mark.parametrize(("svg_bytes", "kept"), [(999, "svg"), (1001, "png"), (400_000, "png")])
def test_the_gallery_takes_the_smaller_picture(tmp_path, svg_bytes, kept):
    write_gallery(planted_run(tmp_path / "run", svg_bytes), tmp_path / "docs")
    assert (tmp_path / f"docs/reproduced/figure-5-one.{kept}").exists()


def test_a_gallery_is_updated_by_some_experiments_in_the_order_of_all(tmp_path):
    run, docs = planted_run(tmp_path / "run"), tmp_path / "docs"
    write_gallery(run, docs)
    (run / "figure-5").rename(run / "gone")
    for name in ("figure-3", "gelu"):
        claim = Claim("a", "", "0.6", "agrees", "")
        Outcome(name, "paper", name, "a source", "About it.", True, "cpu", 2.0, (claim,), ()).write(run / name)
    update_gallery(run, docs)
    page = (docs / "gallery.md").read_text(encoding="utf-8")
    assert re.findall(r"^##.*$", page, re.MULTILINE) == [
        *("## Paper", "### figure-3 { #figure-3 }", "### A title { #figure-5 }", "## Lectures", "### gelu { #gelu }")
    ]
    assert "Of 3 claims: 2 agrees, 1 new." in page
    assert (docs / "reproduced/figure-5-one.svg").exists()


def test_a_folder_without_a_run_gives_no_gallery(tmp_path):
    with pytest.raises(SystemExit, match="no finished run"):
        write_gallery(tmp_path, tmp_path / "docs")
    assert not (tmp_path / "docs").exists()
