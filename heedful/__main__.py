"""`python -m heedful` is the command line."""

from heedful.cli.app import main

main()
