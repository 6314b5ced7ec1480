"""Renews the outputs that pages show, in place: python -m tools.page_outputs docs/tutorial.md …

The blocks of a page are run in their order, in one temporary folder with a copy of examples/. What a ```python block
prints replaces the ```text block that follows it, and a ```console block is run as in tools/command_pages.py.
"""

import io
import os
import re
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tools.command_pages import run_block

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL)


def renew_outputs(page: str, folder: Path) -> str:
    """The page with what its blocks print; they run in the folder."""
    names: dict[str, Any] = {}

    def renewed(match: re.Match[str]) -> str:
        kind, block = match.groups()
        if kind == "console":
            return f"```console\n{run_block(block, folder)}```\n"
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(block, "page", "exec"), names)
        text = printed.getvalue().strip("\n")
        shown = f"\n```text\n{text}\n```\n" if "```text" in match.group() else ""
        return f"```python\n{block}```\n{shown}"

    before = Path.cwd()
    os.chdir(folder)
    try:
        return BLOCK.sub(renewed, page)
    finally:
        os.chdir(before)


def main() -> None:
    """Renews the pages that are named."""
    for path in map(Path, sys.argv[1:]):
        with TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "examples", Path(folder, "examples"))
            path.write_text(renew_outputs(path.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
        print(f"Renewed {path}.")


if __name__ == "__main__":
    main()
