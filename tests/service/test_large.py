"""No request loads a whole file into memory, or a whole body as Python objects."""

import sys
from pathlib import Path

import pytest

from tests.service import bodies
from tests.service.large import MEGABYTE, transfer
from tests.service.processes import serve


@pytest.mark.skipif(sys.platform != "linux", reason="Reads the server's memory in /proc.")
async def test_a_large_file_is_uploaded_and_downloaded_with_little_memory(
    dsn: str, tmp_path: Path
) -> None:
    with serve(dsn, tmp_path) as server:
        measured = await transfer(server, 300)
        assert measured.is_same
        assert measured.growth < 60
        assert await server.end() == 0


@pytest.mark.parametrize(
    ("kind", "megabytes", "status"),
    [
        ("lists of lists", 2, 202),
        ("deep lists", 2, 202),
        ("long lists", 7, 202),
        ("one list", 7, 413),
        ("options", 7, 422),
        ("labels", 7, 413),
        ("unknown job fields", 7, 422),
        ("form payload", 7, 413),
    ],
)
async def test_many_small_values_take_little_memory(
    kind: str, megabytes: int, status: int, dsn: str, tmp_path: Path
) -> None:
    """As Python objects they would take twenty times the size of the body."""
    sent = [bodies.body(kind, megabytes * MEGABYTE)] * 3
    with serve(dsn, tmp_path, "--no-worker") as server:
        measured = await bodies.cost(server, sent)
    assert measured.statuses == [status] * 3
    assert measured.growth < 4 * 3 * megabytes
