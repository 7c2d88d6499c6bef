"""An erasure whose process is killed leaves no file without a row, and is finished later."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.erasing.app import fill, shop_on
from tests.erasing.test_erasing import contents, files, mentions
from tests.invariants import violations
from tests.library.tools import rows, until


async def erase_and_die(dsn: str, folder: Path, number: int) -> bool:
    """Returns False if the erasure ended before the call with this number."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.erasing.killed", dsn, str(folder), "acme", str(number)),
    )
    code = await process.wait()
    assert code in (0, -signal.SIGKILL)
    return code != 0


async def test_an_erasure_that_is_killed_at_every_step_is_continued_by_the_next(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """Each process is killed one call later than the one before, so all of them together get
    through every step."""
    async with shop_on(dsn, tmp_path) as shop:
        for tenant in ("acme", "neighbour"):
            await fill(shop, tenant, 5)
        before = contents(sql, "neighbour")
    number = 0
    while await erase_and_die(dsn, tmp_path, number := number + 1):
        known = {key for (key,) in rows(sql, "select storage_key from batchmill.artifacts")}
        stored = {str(path.relative_to(tmp_path / "files")) for path in files(tmp_path)}
        assert stored <= known
        assert violations(sql) == []
    assert number > 10
    assert mentions(sql, "acme") == []
    assert contents(sql, "neighbour") == before


async def test_the_upkeep_continues_an_erasure_whose_process_was_killed(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchmill.maintenance.erasing.IDLE", 0.0)
    async with shop_on(dsn, tmp_path) as shop:
        await fill(shop, "acme", 5)
        assert await erase_and_die(dsn, tmp_path, 8)
        assert "batchmill.erasures" in mentions(sql, "acme")
        async with shop.running():
            await until(lambda: rows(sql, "select from batchmill.erasures") == [])
    assert (mentions(sql, "acme"), files(tmp_path)) == ([], [])
