"""The notebooks of examples/ run, one after the other, and are stored without outputs."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = {path.name: nbformat.read(path, as_version=4) for path in sorted(EXAMPLES.glob("*.ipynb"))}


def test_notebooks_are_stored_without_outputs():
    assert len(NOTEBOOKS) == 3
    for name, notebook in NOTEBOOKS.items():
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in code), name


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What the cells of each notebook show. All run in one kernel, whose names are deleted before each notebook."""
    folder = tmp_path_factory.mktemp("notebooks")
    shutil.copy(EXAMPLES / "comments.csv", folder)
    together = nbformat.v4.new_notebook()
    ends = []
    for notebook in NOTEBOOKS.values():
        sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        together.cells += map(nbformat.v4.new_code_cell, ["%reset -f", *sources])
        ends.append(len(together.cells))
    nbformat.write(together, folder / "together.ipynb")
    # In a process of its own, so that what the client imports stays there.
    line = "import sys; from nbclient.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", line, "--inplace", "--timeout=120", "together.ipynb"]
    done = subprocess.run(command, cwd=folder, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    together = nbformat.read(folder / "together.ipynb", as_version=4)
    parts = zip([0, *ends], ends, strict=False)
    return [[cell.outputs for cell in together.cells[start + 1 : end]] for start, end in parts]


def shown(cell, kind="text/plain"):
    """What a cell prints, or its last line as this kind of data."""
    return "".join(output.get("text", "") or output.get("data", {}).get(kind, "") for output in cell)


@pytest.mark.slow
def test_every_cell_shows_something_and_no_warning(outputs):
    for cells in outputs:
        assert all(shown(cell) for cell in cells)
        assert "Warning" not in "".join(map(shown, cells))


@pytest.mark.slow
def test_the_notebooks_say_what_their_texts_promise(outputs):
    classifier, data, which = outputs
    assert "charming" in shown(classifier[2], "text/html")
    assert "masterpiece" in shown(data[3])
    assert "use leave-one-out" in shown(which[1])
    assert "No difference can be significant on fewer than 11 texts; there are 5." in shown(which[2])
    assert "mine (read)" in shown(which[3])
