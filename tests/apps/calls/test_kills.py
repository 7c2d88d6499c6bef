"""Server processes with their workers are killed in the middle of calls.

`CALLS_KILLS=50 pytest tests/apps/calls/test_kills.py` kills more often than a test run has time for.
"""

import asyncio
import os
import random
import signal
from typing import Any

import psycopg
import pytest

from apps.calls.tables import CALLS
from batchmill import Mill
from tests.apps.calls.conftest import Calls, Organisation, tone
from tests.apps.calls.fake_speechkit import FakeProcess
from tests.artifacts.conftest import object_server
from tests.artifacts.objects import ObjectServer
from tests.invariants import violations
from tests.library.tools import one, rows, until

__all__ = ["object_server"]

KILLS = int(os.environ.get("CALLS_KILLS", "8"))
CALLS_AT_ONCE = 12
EVENTS = "select coalesce(sum(last_event), 0)::bigint from batchmill.batches"
STATES = "select state, count(*) from batchmill.batches group by state"
KEPT = """select a.job_id, a.name, count(*) from batchmill.artifacts a
    where a.state = 'kept' group by 1, 2 having count(*) > 1"""


@pytest.mark.timeout(900)
async def test_kills_lose_nothing_and_buy_nothing_twice(
    dsn: str, sql: psycopg.Connection[Any], object_server: ObjectServer
) -> None:
    """An attempt that is killed may have started an operation. The next one sends the same token,
    so the provider returns the same operation."""
    async with FakeProcess(seconds=1) as fake, Mill(dsn, migrate=True, schemas=[CALLS]):
        environment = {
            **object_server.environment,
            **fake.environment,
            "BATCHMILL_ARTIFACTS": object_server.new_folder(),
            "CALLS_PROVIDER": "speechkit",
            "CALLS_RETRY_SECONDS": "1",
            "CALLS_LEASE_SECONDS": "2",
            "SPEECHKIT_POLL_INTERVAL_MS": "300",
        }
        async with Calls(dsn, environment) as server:
            nobody = Organisation("default", "", server.url)
            recordings = [(f"{n}.wav", tone(1 + n / 10)) for n in range(CALLS_AT_ONCE)]
            answer = await nobody.upload(*recordings, language="en-US")
            assert answer.status_code == 202, answer.text
            for _ in range(KILLS):
                await until_progress(sql)
                await asyncio.sleep(random.uniform(0, 0.4))
                await server.end(signal.SIGKILL)
                await server.start()
            await until(lambda: rows(sql, STATES) == [("completed", CALLS_AT_ONCE)])
        assert fake.paid == CALLS_AT_ONCE
    assert rows(sql, KEPT) == []
    names = (
        "select name, count(*) from batchmill.artifacts where state = 'kept' group by 1 order by 1"
    )
    assert rows(sql, names) == [
        (name, CALLS_AT_ONCE)
        for name in ("analysis.json", "audio.ogg", "peaks.json", "transcript.json")
    ]
    assert violations(sql) == []


async def until_progress(sql: psycopg.Connection[Any]) -> None:
    """Waits for some events, so that the same attempt is not killed again and again."""
    before = one(sql, EVENTS)[0]
    await until(
        lambda: (
            one(sql, EVENTS)[0] >= before + 4 or rows(sql, STATES) == [("completed", CALLS_AT_ONCE)]
        )
    )
