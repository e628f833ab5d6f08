"""`python -m cagepool`: the command line without its script."""

from cagepool.cli.main import main

main()
