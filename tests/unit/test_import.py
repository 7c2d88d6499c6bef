"""Imports load only what they need, because they delay every start of a program."""

import subprocess
import sys

import pytest

import batchmill
from batchmill.worker.options import WorkerOptions

TERMINAL = {"typer", "rich", "click"}
DRIVERS = {"psycopg", "pydantic", "pydantic_core", "pydantic_settings", "asyncio"}
FETCHING = {"httpx", "httpcore", "anyio"}
WORKERS = {"batchmill.worker", "batchmill.embedded", "batchmill.maintenance", "multiprocessing"}


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import batchmill", TERMINAL | DRIVERS | WORKERS | FETCHING),
        (
            "from batchmill import Mill; Mill('postgresql://nowhere/x')",
            TERMINAL | WORKERS | FETCHING,
        ),
    ],
)
def test_an_import_does_not_load_unneeded_modules(statement: str, unwanted: set[str]) -> None:
    assert loaded_by(statement) & unwanted == set()


def test_lazily_imported_names_are_the_real_objects() -> None:
    assert batchmill.WorkerOptions is WorkerOptions
    assert set(batchmill.__all__) <= set(dir(batchmill))
    assert not hasattr(batchmill, "Nothing")


def loaded_by(statement: str) -> set[str]:
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())
