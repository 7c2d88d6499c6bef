"""Limits on the mails per hour to an address and of a tenant."""

import json
from typing import Any

import psycopg
import pytest

from batchmill import Batch, Mill, QuotaExceeded
from tests.library.tools import one, rows
from tests.notify.mailbox import Mailbox
from tests.notify.tools import ADA, delivered, running_later, settled, work_on
from tests.store.engine import Engine
from tests.store.rivals import Rival


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHMILL_MAILS_PER_ADDRESS", "3")
    monkeypatch.setenv("BATCHMILL_MAILS_PER_TENANT", "5")


async def submit_batches(mill: Mill, count: int, **options: Any) -> list[Batch]:
    """Batches that send mail when they finish. No worker runs yet."""
    work = mill.tasks.get("work") or work_on(mill)
    return [await mill.submit(work, [n], **options) for n in range(count)]


async def codes_of(mill: Mill, batches: list[Batch]) -> list[str | None]:
    """The error codes of the mails of these batches; None for mails that were sent."""
    codes = []
    for batch in batches:
        await batch.wait()
        codes += [job.error.code if job.error else None for job in await delivered(mill, batch)]
    return codes


async def test_mails_to_an_address_are_limited_across_tenants(mill: Mill, mailbox: Mailbox) -> None:
    batches = [
        *await submit_batches(mill, 4, notify=ADA, tenant="one"),
        *await submit_batches(mill, 4, notify=ADA.upper(), tenant="two"),
    ]
    async with mill.running():
        codes = await codes_of(mill, batches)
        assert sorted(codes, key=str) == [None] * 3 + ["too_many_mails"] * 5
        with pytest.raises(QuotaExceeded) as refused:
            await submit_batches(mill, 1, notify=ADA, tenant="three")
    assert (refused.value.used, refused.value.limit) == (3, 3)
    assert 0 < (refused.value.retry_after or 0) <= 3_600
    assert len(mailbox.mails) == 3


async def test_mails_of_a_tenant_are_limited(mill: Mill, mailbox: Mailbox) -> None:
    batches = [
        batch
        for n in range(8)
        for batch in await submit_batches(mill, 1, notify=f"{n}@example.org", tenant="one")
    ]
    async with mill.running():
        assert (await codes_of(mill, batches)).count("too_many_mails") == 3
        with pytest.raises(QuotaExceeded, match="5 mails per hour"):
            await batches[0].notify("9@example.org")
        others = await submit_batches(mill, 1, notify="10@example.org", tenant="two")
        assert await codes_of(mill, others) == [None]
    assert len(mailbox.mails) == 6


class Clock:
    """Counts mails at times that the test sets."""

    def __init__(self, sql: psycopg.Connection[Any]):
        self._sql = sql

    def at(self, minutes: int) -> "Clock":
        self._sql.execute(f"set batchmill.clock_offset = '{minutes} min'".encode())
        return self

    def counts(self, job: int, most: int = 3, *, email: str = ADA, tenant: str = "one") -> bool:
        """Whether the job may send its mail if `most` are allowed per hour."""
        counted = "select batchmill.count_mail(%s::bigint, %s, %s, %s::integer, %s::integer)"
        return one(self._sql, counted, job, email, tenant, most, most)[0]

    def wait(self, most: int) -> float:
        """The seconds until a mail is accepted again."""
        with pytest.raises(psycopg.Error) as refused:
            self._sql.execute(
                "select batchmill.require_mail_room(%s, 'two', %s, 100)", [[ADA], most]
            )
        return json.loads(refused.value.diag.message_detail or "")["retry_after"]


@pytest.fixture
def clock(sql: psycopg.Connection[Any]) -> Clock:
    return Clock(sql)


def test_the_mail_limit_applies_to_any_60_minutes(
    clock: Clock, sql: psycopg.Connection[Any]
) -> None:
    """Counting by clock hours would allow six mails around a full hour."""
    assert clock.at(0).counts(1) and clock.counts(2)
    assert clock.at(30).counts(3)
    assert not clock.at(59).counts(4)
    # There is room again when the oldest of the newest `most` mails is an hour old.
    assert 30 < clock.wait(most=3) <= 60
    assert 30 < clock.wait(most=2) <= 60
    assert 1_800 < clock.wait(most=1) <= 1_860
    assert clock.at(61).counts(4) and clock.counts(5)
    assert not clock.counts(6)
    assert not clock.at(89).counts(6)
    assert clock.at(91).counts(6)
    # Mails older than an hour are deleted.
    assert rows(sql, "select job_id from batchmill.mails order by 1") == [(4,), (5,), (6,)]


def test_a_mail_counts_once_at_the_time_of_its_last_attempt(clock: Clock) -> None:
    assert all(clock.at(0).counts(1, most=1) for _ in range(3))
    assert clock.at(50).counts(1, most=1)
    # The last attempt may have delivered the mail.
    assert not clock.at(61).counts(2, most=1)
    assert not clock.at(109).counts(2, most=1)
    assert clock.at(111).counts(2, most=1)


def test_a_limit_of_zero_refuses_every_mail(clock: Clock) -> None:
    assert not clock.at(0).counts(1, most=0)
    assert clock.wait(most=0) == 3_600


async def test_a_retried_mail_counts_once(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], mailbox: Mailbox
) -> None:
    mailbox.answers = ["451 Later"]
    (batch,) = await submit_batches(mill, 1, notify=ADA)
    async with mill.running():
        await batch.wait()
        assert (await settled(mill, batch)).state == "scheduled"
    async with running_later(mill, dsn, "10m") as ahead:
        await delivered(ahead, batch)
    assert one(sql, "select count(*) from batchmill.mails") == (1,)


async def test_a_mail_counts_if_its_second_attempt_sends_it(
    mill: Mill, sql: psycopg.Connection[Any], mailbox: Mailbox
) -> None:
    """The first attempt may have ended with its worker before it was counted."""
    limited = "select batchmill.set_limit('task:batchmill.email', %s, null, null, null)"
    sql.execute(limited, [0])
    batches = await submit_batches(mill, 4, notify=ADA)
    async with mill.running():
        for batch in batches:
            await batch.wait()
        sql.execute("update batchmill.jobs set attempt = 1 where task = 'batchmill.email'")
        sql.execute(limited, [4])
        assert (await codes_of(mill, batches)).count("too_many_mails") == 1
    assert len(mailbox.mails) == 3


@pytest.mark.parametrize(
    "others", [{"email": ADA.upper(), "tenant": "two"}, {"email": "bob@example.org"}]
)
def test_concurrent_mails_to_an_address_or_of_a_tenant_are_counted_in_turn(
    dsn: str, sql: psycopg.Connection[Any], others: dict[str, str]
) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        with sql.transaction():
            assert Clock(sql).counts(1, most=1)
            late = Rival(lambda: Clock(conn).counts(2, most=1, **others))
            late.wait_until_blocked(Engine(conn))
        assert not late.result()
