"""`python -m heedful` is the command line."""

import subprocess
import sys

import heedful


def test_the_module_runs_the_command_line():
    run = subprocess.run([sys.executable, "-m", "heedful", "--version"], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, f"{heedful.__version__}\n", "")
