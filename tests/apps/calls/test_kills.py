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

KILLS = int(os.environ.get("CALLS_KILLS", "0"))
AT_ONCE = max(8, KILLS)
FILES = ("analysis.json", "audio.ogg", "peaks.json", "transcript.json")
STAGES = "select count(*) from batchmill.events where type in ('job_stage', 'job_completed')"
STATES = "select state, count(*) from batchmill.batches group by state"
FAILED = "select task, error, attempts from batchmill.finished where state = 'failed'"
KEPT = """select a.name, count(*), count(distinct (c.name, a.sha256)), count(distinct c.name)
    from batchmill.artifacts a join calls.calls c on c.id = a.batch_id
    where a.state = 'kept' group by a.name order by a.name"""
# The jobs that are the operations of the provider `local`.
LOCAL = """select count(*) from (select id, task from batchmill.jobs union all
    select id, task from batchmill.finished) j where task = 'calls_operations.local'"""

ENVIRONMENT = {
    "CALLS_RETRY_SECONDS": "1",
    "CALLS_LEASE_SECONDS": "2",
    # A kill interrupts one conversion and one start at most.
    "CALLS_CONVERSIONS": "1",
    "CALLS_STARTS": "1",
    "SPEECHKIT_POLL_INTERVAL_MS": "300",
}


def environment(object_server: ObjectServer, fake: FakeProcess | None) -> dict[str, str]:
    return {
        **ENVIRONMENT,
        **object_server.environment,
        "BATCHMILL_ARTIFACTS": object_server.new_folder(),
        **({"CALLS_PROVIDER": "speechkit", **fake.environment} if fake else {}),
    }


async def upload(server: Calls, count: int) -> None:
    """As many recordings of different lengths."""
    nobody = Organisation("default", "", server.url)
    recordings = [(f"{n}.wav", tone(1 + n / 10)) for n in range(count)]
    answer = await nobody.upload(*recordings, language="en-US")
    assert answer.status_code == 202, answer.text


def is_done(sql: psycopg.Connection[Any], count: int) -> bool:
    states = dict(rows(sql, STATES))
    assert "failed" not in states, rows(sql, FAILED)
    return states == {"completed": count}


async def until_done(sql: psycopg.Connection[Any], count: int) -> None:
    await until(lambda: is_done(sql, count))


async def kill(server: Calls, times: int, sql: psycopg.Connection[Any], count: int) -> None:
    """Kills the server and starts it again. Some stages end before each kill. Otherwise the same
    jobs would be killed until they fail, because a crash counts as an attempt."""
    for _ in range(times):
        (before,) = one(sql, STAGES)
        await until(lambda before=before: one(sql, STAGES)[0] > before + 2 or is_done(sql, count))
        await asyncio.sleep(random.uniform(0, 0.4))
        await restart(server)


async def restart(server: Calls) -> None:
    await server.end(signal.SIGKILL)
    await server.start()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("idempotent", [1, 0] if KILLS else [1])
async def test_kills_lose_nothing_and_buy_nothing_twice(
    dsn: str,
    sql: psycopg.Connection[Any],
    object_server: ObjectServer,
    idempotent: int,
) -> None:
    """An attempt that is killed may have started an operation. The next one sends the same token,
    and an idempotent provider returns the same operation. Any other one starts a second one."""
    async with (
        FakeProcess(seconds=1, idempotent=idempotent) as fake,
        Mill(dsn, migrate=True, schemas=[CALLS]),
        Calls(dsn, environment(object_server, fake)) as server,
    ):
        kills = KILLS or 5
        await upload(server, AT_ONCE)
        await kill(server, kills, sql, AT_ONCE)
        await until_done(sql, AT_ONCE)
        starts, paid = fake.counts["requests"]["start"], fake.paid
        assert AT_ONCE <= starts <= AT_ONCE + kills
        assert paid == (AT_ONCE if idempotent else starts)
        # Without kills, the same recordings give the same bytes.
        await upload(server, 3)
        await until_done(sql, AT_ONCE + 3)
    assert rows(sql, KEPT) == [(name, AT_ONCE + 3, AT_ONCE, AT_ONCE) for name in FILES]
    assert violations(sql) == []


async def test_a_kill_between_the_answer_and_the_commit_is_the_window(
    dsn: str, sql: psycopg.Connection[Any], object_server: ObjectServer
) -> None:
    """The provider has started the operation, and the server has not stored its id. The next
    attempt gets the same operation, or pays for another one."""
    async with (
        FakeProcess() as fake,
        Mill(dsn, migrate=True, schemas=[CALLS]),
        Calls(dsn, environment(object_server, fake)) as server,
    ):
        for call, (idempotent, paid) in enumerate([(True, 1), (False, 3)], 1):
            fake.behave(idempotent=idempotent)
            fake.fail("start", "held")
            await upload(server, 1)
            await until(lambda call=call: fake.paid == call)
            await restart(server)
            await until_done(sql, call)
            assert (fake.counts["requests"]["start"], fake.paid) == (2 * call, paid)
    assert one(sql, "select count(*) from calls.operations") == (2,)


@pytest.mark.timeout(900)
async def test_kills_during_operations_on_this_machine_lose_nothing(
    dsn: str, sql: psycopg.Connection[Any], object_server: ObjectServer
) -> None:
    count = 2
    async with (
        Mill(dsn, migrate=True, schemas=[CALLS]),
        Calls(dsn, environment(object_server, None)) as server,
    ):
        await upload(server, count)
        await until(lambda: one(sql, LOCAL)[0] > 0)
        await restart(server)
        await until_done(sql, count)
    assert one(sql, LOCAL) == (count,)
    assert rows(sql, KEPT) == [(name, count, count, count) for name in FILES]
    assert violations(sql) == []
