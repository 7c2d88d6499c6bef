"""No request loads a whole file into memory."""

import sys
from pathlib import Path

import pytest

from tests.service.large import transfer
from tests.service.processes import serve


@pytest.mark.skipif(sys.platform != "linux", reason="Reads the server's memory in /proc.")
async def test_a_large_file_goes_there_and_back_at_flat_memory(dsn: str, tmp_path: Path) -> None:
    with serve(dsn, tmp_path) as server:
        found = await transfer(server, 300)
        assert found.is_same
        assert found.growth < 60
        assert await server.end() == 0
