"""The command line: one module for each group of commands. The names besides `main` are for
the demos of applications: they show batches and tables in the terminal."""

from batchmill.cli.app import main
from batchmill.cli.follow import follow_batch
from batchmill.cli.output import note, out, table

__all__ = ["follow_batch", "main", "note", "out", "table"]
