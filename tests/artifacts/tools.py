"""Helpers that several of these tests use."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg

from batchmill import ArtifactRecord, Mill
from batchmill.maintenance.collector import Collector
from tests.invariants import file_violations, files_in, violations
from tests.library.tools import later, one, rows

STATES = "select state, count(*) from batchmill.artifacts group by state order by state"


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def cut_after(*parts: bytes, error: BaseException | None = None) -> AsyncIterator[bytes]:
    """A client that sends these parts and then disconnects."""
    for part in parts:
        yield part
    raise error or ConnectionResetError("The client disconnected.")


class ManualSource:
    """A source whose chunks the test sends one by one."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._drained = asyncio.Event()

    def send(self, *chunks: bytes | None) -> None:
        """Sends chunks; None ends the source."""
        self._drained.clear()
        for chunk in chunks:
            self._queue.put_nowait(chunk)

    async def drained(self) -> None:
        """Waits until the reader has read all chunks and asks for more."""
        await self._drained.wait()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            if self._queue.empty():
                self._drained.set()
            if (chunk := await self._queue.get()) is None:
                return
            yield chunk


def states(sql: psycopg.Connection[Any]) -> dict[str, int]:
    return dict(rows(sql, STATES))


def stored_bytes(sql: psycopg.Connection[Any], tenant: str = "default") -> int:
    found = rows(sql, "select stored_bytes from batchmill.usage where tenant = %s", tenant)
    return found[0][0] if found else 0


def all_violations(sql: psycopg.Connection[Any], files: Path) -> list[str]:
    """Violated invariants of rows and of files."""
    return violations(sql) + file_violations(sql, files)


def nothing_is_left(sql: psycopg.Connection[Any], files: Path) -> bool:
    """There are no rows and no files, and no bytes are counted as usage."""
    left = one(
        sql,
        "select (select count(*) from batchmill.artifacts), coalesce(sum(stored_bytes), 0) from batchmill.usage",
    )
    return left == (0, 0) and not list(files_in(files))


def collector_of(mill: Mill) -> Collector:
    return Collector(mill.engine.store.artifacts, lambda: mill.engine.storage)


async def collect(dsn: str, files: Path, offset: str = "0s") -> None:
    """Removes what the upkeep removes after this time."""
    async with Mill(later(dsn, offset), artifacts=files) as mill:
        await collector_of(mill).collect()


def has_content(record: ArtifactRecord, content: bytes) -> bool:
    digest = hashlib.sha256(content).hexdigest()
    return (record.size, record.sha256) == (len(content), digest)
