"""How many mails an address gets, and a tenant sends, in an hour."""

import asyncio
from typing import Any

import psycopg
import pytest

from batchmill import Batch, Mill, QuotaExceeded
from tests.library.tools import one
from tests.notify.mailbox import Mailbox
from tests.notify.tools import ADA, delivered, running_later, work_on


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHMILL_MAILS_PER_ADDRESS", "3")
    monkeypatch.setenv("BATCHMILL_MAILS_PER_TENANT", "5")


async def waiting(mill: Mill, count: int, **options: Any) -> list[Batch]:
    """Batches that are to tell by mail; nobody works on them yet."""
    work = mill.tasks.get("work") or work_on(mill)
    return [await mill.submit(work, [n], **options) for n in range(count)]


async def codes_of(mill: Mill, batches: list[Batch]) -> list[str | None]:
    """How the mails of these batches went; None for those that were sent."""
    found = []
    for batch in batches:
        await batch.wait()
        found += [job.error.code if job.error else None for job in await delivered(mill, batch)]
    return found


async def test_an_address_gets_so_many_mails_an_hour_whoever_asks_for_them(
    mill: Mill, mailbox: Mailbox
) -> None:
    batches = [
        *await waiting(mill, 4, notify=ADA, tenant="one"),
        *await waiting(mill, 4, notify=ADA.upper(), tenant="two"),
    ]
    async with mill.running():
        codes = await codes_of(mill, batches)
        assert sorted(codes, key=str) == [None] * 3 + ["too_many_mails"] * 5
        with pytest.raises(QuotaExceeded) as refused:
            await waiting(mill, 1, notify=ADA, tenant="three")
    assert (refused.value.used, refused.value.limit) == (3, 3)
    assert 0 < (refused.value.retry_after or 0) <= 3_600
    assert len(mailbox.mails) == 3


async def test_a_tenant_sends_so_many_mails_an_hour(mill: Mill, mailbox: Mailbox) -> None:
    batches = [
        batch
        for n in range(8)
        for batch in await waiting(mill, 1, notify=f"{n}@example.org", tenant="one")
    ]
    async with mill.running():
        assert (await codes_of(mill, batches)).count("too_many_mails") == 3
        with pytest.raises(QuotaExceeded, match="5 mails an hour"):
            await batches[0].notify("9@example.org")
        others = await waiting(mill, 1, notify="10@example.org", tenant="two")
        assert await codes_of(mill, others) == [None]
    assert len(mailbox.mails) == 6


async def test_the_next_hour_has_mails_of_its_own(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], mailbox: Mailbox
) -> None:
    first = await waiting(mill, 3, notify=ADA)
    async with mill.running():
        assert await codes_of(mill, first) == [None] * 3
    async with running_later(mill, dsn, "26h") as ahead:
        assert await codes_of(ahead, await waiting(ahead, 1, notify=ADA)) == [None]
    assert one(sql, "select count(distinct hour) from batchmill.mail_counts") == (1,)


async def test_a_mail_that_is_tried_again_counts_once(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], mailbox: Mailbox
) -> None:
    mailbox.answers = ["451 Later"]
    (batch,) = await waiting(mill, 1, notify=ADA)
    async with mill.running():
        await batch.wait()
        while len(mailbox.envelopes) < 1 and mailbox.answers:
            await asyncio.sleep(0.01)
    async with running_later(mill, dsn, "10m") as ahead:
        await delivered(ahead, batch)
    assert one(sql, "select sum(mails) from batchmill.mail_counts where who like 'to:%%'") == (1,)


async def test_mails_that_are_sent_side_by_side_are_counted_exactly(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    await mill.open()
    counts = (
        mill.database.value("count_mail", email=ADA, tenant=f"t-{n}", per_address=7, per_tenant=100)
        for n in range(40)
    )
    assert sum(await asyncio.gather(*counts)) == 7
