"""`python -m batchmill`."""

from batchmill.cli import main

main()
