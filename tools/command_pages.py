"""Renews docs/commands/ in place, a page per command of the command line: python -m tools.command_pages [COMMAND …]

A page is written by hand, except for two things. Under "## Options" the table is made from the command. In a block
```console the lines that begin with "$ " are run, all of a page in one temporary folder with a copy of examples/, and
their real output follows them. A command without a page gets one from its help. The command of a group, "features
measure", has the page features-measure.md. The environment variable HEEDFUL_DATA names the data sets.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Any

import typer

from heedful.cli.app import app
from heedful.cli.settings_command import SettingsCommand

FOLDER = Path(__file__).parents[1] / "docs/commands"
CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
OPTIONS = re.compile(r"(?<=^## Options\n\n).*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
SETTINGS = (
    "Every setting of a method, metric, probe or data set is an option too; `heedful list NAME` prints the settings of "
    "one."
)
WIDTH = 100


def commands() -> dict[str, Any]:
    """The commands of the command line by name, with their parameters; one of a group as "features measure"."""
    group: Any = typer.main.get_command(app)
    return _under("", group)


def _under(name: str, command: Any) -> dict[str, Any]:
    """The command by its name, or the commands of a group."""
    members = getattr(command, "commands", None)
    if members is None:
        return {name: command}
    return {known: own for last in members for known, own in _under(f"{name} {last}".strip(), members[last]).items()}


def page_of(name: str) -> Path:
    """The page of a command."""
    return FOLDER / f"{name.replace(' ', '-')}.md"


def options_of(command: Any) -> str:
    """The table of arguments and options, and what is said of settings."""
    rows = ["| option | default | meaning |", "| --- | --- | --- |", *map(_row, command.params)]
    if isinstance(command, SettingsCommand):
        rows += ["", command.settings_help()]
    elif command.context_settings.get("ignore_unknown_options"):
        rows += ["", SETTINGS]
    return "\n".join(rows) + "\n\n"


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        names, default = f"`{parameter.metavar or parameter.name.upper()}`", ""
    else:
        names = ", ".join(f"`{name}`" for name in parameter.opts)
        unset = parameter.default is None or parameter.is_flag or parameter.required
        default = "" if unset else f"`{parameter.default}`"
    meaning = " ".join(parameter.help.split()).replace("|", "&#124;")
    return f"| {names} | {'required' if parameter.required else default} | {meaning} |"


def renew(page: str, command: Any, folder: Path) -> str:
    """The page with the options of the command and the outputs of its console blocks."""
    page = CONSOLE.sub(lambda block: run_block(block.group(), folder), page)
    return OPTIONS.sub(lambda _: options_of(command), page, count=1).rstrip() + "\n"


def run_block(block: str, folder: Path) -> str:
    """The block with the real output after each of its commands, which run in the folder."""
    lines = [line for line in block.splitlines() if line.startswith("$ ")]
    return "\n".join(f"{line}\n{_output(line[2:], folder)}" for line in lines)


def _output(line: str, folder: Path) -> str:
    """What a line of shell prints on both outputs, without colours."""
    environment = {
        **os.environ,
        **{"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        "PYTHONPATH": str(FOLDER.parents[1]),
    }
    script = f'heedful() {{ "{sys.executable}" -m heedful "$@"; }}\n{line}'
    both: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(["sh", "-c", script], cwd=folder, env=environment, text=True, check=False, **both)
    if "Traceback" in done.stdout:
        sys.exit(f"{line}\n{done.stdout}")
    rows = [_folded(row) if row.startswith("heedful: ") else row.rstrip() for row in done.stdout.splitlines()]
    text = re.sub(r"\n{2,}", "\n\n", "\n".join(rows)).strip("\n")
    return f"{text}\n" if text else ""


def _folded(error: str) -> str:
    """An error as a terminal breaks it, without the end of a long list of names."""
    return fill(error, WIDTH, break_on_hyphens=False, max_lines=3, placeholder=" …")


def first_page(name: str, command: Any) -> str:
    """The page of a command that has none: its help, its example and its options."""
    about, *rest = (command.help or "").split("\n\n")
    example = re.search(r"`(heedful [^`]*)`", command.help or "")
    line = " ".join(example.group(1).split()) if example else f"heedful {name} --help"
    parts = [f"# heedful {name}", about, f"```console\n$ {line}\n```", *rest, "## Options\n\n"]
    return "\n\n".join(parts)


def main() -> None:
    """Renews the pages of the commands that are named, or all of them."""
    if "HEEDFUL_DATA" not in os.environ:
        sys.exit("Set HEEDFUL_DATA to the folder of the data sets; some examples read them.")
    for name in sys.argv[1:] or commands():
        path, command = page_of(name), commands()[name]
        page = path.read_text(encoding="utf-8") if path.exists() else first_page(name, command)
        with TemporaryDirectory() as folder:
            shutil.copytree(FOLDER.parents[1] / "examples", Path(folder, "examples"))
            path.write_text(renew(page, command, Path(folder)), encoding="utf-8")
        print(f"Renewed docs/commands/{path.name}.")


if __name__ == "__main__":
    main()
