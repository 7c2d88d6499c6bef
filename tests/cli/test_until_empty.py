"""`batchmill worker --until-empty`: a worker that runs what is due and ends."""

import asyncio
from typing import Any

import psycopg
import pytest

from batchmill import Mill
from batchmill.cli.parsing import parse_duration
from batchmill.errors import InvalidInput
from tests.cli.conftest import SHOP, Programs
from tests.cli.shop import FAILS_ONCE, SOLD_OUT
from tests.library.tools import one

ORDERS = [1, 2, FAILS_ONCE, SOLD_OUT]
WORKER = ("worker", "--app", SHOP, "--until-empty")


async def end_of(start: Programs, dsn: str, *options: str) -> tuple[int, str]:
    """Returns the exit code of the worker, and its log."""
    worker = start(*WORKER, *options, dsn=dsn)
    text, log = await asyncio.to_thread(worker.communicate)
    assert text == "" and "Traceback" not in log
    return worker.returncode, log


async def test_a_worker_runs_what_is_due_and_leaves_what_is_due_later(
    start: Programs, dsn: str, shop_mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    batch = await shop_mill.submit("pack", [{"number": number} for number in ORDERS])
    later = await shop_mill.submit("pack", [{"number": 3}], delay=3_600)
    code, log = await end_of(start, dsn, "--at-most", "200s")
    assert code == 0
    assert "No job is due." in log
    record = await batch.get()
    assert (record.completed, record.failed) == (3, 1)
    assert (await later.get()).state == "pending"
    assert one(sql, "select state, attempt from batchmill.jobs") == ("scheduled", 0)
    assert one(sql, "select state from batchmill.workers") == ("stopped",)


async def test_a_worker_without_due_jobs_ends_at_once(
    start: Programs, dsn: str, shop_mill: Mill
) -> None:
    code, log = await end_of(start, dsn)
    assert code == 0
    assert "No job is due." in log


@pytest.mark.parametrize("time", ["1", "1s", "0.02m"])
async def test_a_worker_drains_after_its_time(
    start: Programs, dsn: str, shop_mill: Mill, sql: psycopg.Connection[Any], time: str
) -> None:
    await shop_mill.enqueue("hold", {"number": 1})
    code, log = await end_of(start, dsn, "--at-most", time, "--grace", "0")
    assert code == 0
    assert "Stopped before all due jobs were done." in log
    assert one(sql, "select state, attempt from batchmill.jobs") == ("ready", 0)


async def test_a_time_of_zero_is_refused(start: Programs, dsn: str, shop_mill: Mill) -> None:
    code, log = await end_of(start, dsn, "--at-most", "0s")
    assert code == 2
    assert log == "error: at_most must be greater than 0 seconds, not 0.0.\n"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("50", 50),
        ("50s", 50),
        ("50 s", 50),
        ("0.5s", 0.5),
        ("2m", 120),
        ("2min", 120),
        ("1.5h", 5_400),
        ("1d", 86_400),
    ],
)
def test_a_duration_has_a_unit_or_is_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "s", "-5s", "+5", "5 minutes", "1h30m", "1e3", "nan", "inf", ".5", "5.", "50S", "٣"],
)
def test_other_texts_are_not_durations(text: str) -> None:
    with pytest.raises(InvalidInput, match="Use 90, 90s, 5m, 2h or 1d"):
        parse_duration(text)
