"""Registering notification targets: at submit, later, after the finish, and invalid ones."""

import asyncio
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from batchmill import Conflict, IdempotencyConflict, InvalidInput, Mill, NotFound, UnknownTask
from batchmill.notify import handlers
from tests.invariants import violations
from tests.library.tools import later, nothing_is_left, one, rows
from tests.notify.mailbox import Mailbox
from tests.notify.receiver import Receiver
from tests.notify.tools import ADA, delivered, only_notification, work_on

COUNTS = (
    "select count(*) from batchmill.notifications union all select count(*) from batchmill.webhooks"
)


async def test_targets_can_be_added_at_submit_and_later(mill: Mill, receiver: Receiver) -> None:
    work = work_on(mill)
    batch = await mill.submit(work, [1], notify=[receiver.url])
    (first,) = await batch.notifications()
    assert (first.url, first.email, first.told_generation, first.job_id) == (
        receiver.url,
        None,
        0,
        None,
    )
    both = await batch.notify(ADA, receiver.url)
    assert [each.url or each.email for each in both] == [receiver.url, ADA]
    assert both[0] == first, "The same target is registered once."


async def test_a_target_added_after_the_finish_is_notified_once(
    mill: Mill, receiver: Receiver, mailbox: Mailbox, sql: psycopg.Connection
) -> None:
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1])
        await batch.wait()
        await batch.notify(receiver.url)
        received = await receiver.wait_for()
        await batch.notify(receiver.url, ADA)
        await delivered(mill, batch)
    assert received.data["batch_id"] == str(batch.id)
    assert len(receiver.deliveries) == len(mailbox.mails) == 1
    assert violations(sql) == []


async def test_a_target_added_during_the_finish_is_notified_once(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    work = work_on(mill)
    async with mill.running():
        batches = [await mill.submit(work, [n]) for n in range(40)]
        await asyncio.gather(*(batch.notify(receiver.url) for batch in batches))
        for batch in batches:
            await batch.wait()
            await delivered(mill, batch)
    received = [each.data["batch_id"] for each in receiver.deliveries]
    assert sorted(received) == sorted(str(batch.id) for batch in batches)
    assert violations(sql) == []


async def test_a_registration_waits_for_a_finish_that_has_not_committed(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection, dsn: str
) -> None:
    """Otherwise neither transaction would see the other, and nothing would be delivered."""
    work = work_on(mill)
    batch = await mill.submit(work, [1], delay=3600)
    await mill.webhooks.save(receiver.url)
    with psycopg.connect(dsn) as finishing:
        finishing.execute("select batchmill.cancel_batch(%s)", [batch.id])
        registering = asyncio.create_task(batch.notify(receiver.url))
        while not one(sql, "select count(*) from pg_stat_activity where wait_event_type = 'Lock'")[
            0
        ]:
            await asyncio.sleep(0.01)
        finishing.commit()
    (record,) = await registering
    assert record.told_generation == 1 and record.job_id


async def test_a_submit_that_is_rolled_back_registers_nothing(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection, dsn: str
) -> None:
    work = work_on(mill)
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        await mill.submit(work, [1], notify=[receiver.url, ADA], connection=conn)
        await conn.rollback()
    assert rows(sql, COUNTS) == [(0,), (0,)]
    assert nothing_is_left(sql)


async def test_a_submit_in_the_callers_transaction_is_delivered(
    mill: Mill, receiver: Receiver, dsn: str
) -> None:
    work = work_on(mill)
    with psycopg.connect(dsn) as conn:
        batch = await asyncio.to_thread(
            lambda: mill.sync.submit(work, [1], notify=receiver.url, connection=conn)
        )
    async with mill.running():
        assert (await receiver.wait_for()).data["batch_id"] == str(batch.id)
    await asyncio.to_thread(mill.sync.close)


async def test_targets_can_be_added_in_sql(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    work = work_on(mill)
    async with mill.running():
        await mill.submit(work, [0])
        options = f'{{"notify": ["{receiver.url}"]}}'
        submit = "select batchmill.submit('work', '[{\"payload\": 1}]', %s)"
        answer = one(sql, submit, options)[0]
        assert (await receiver.wait_for()).data["batch_id"] == answer["batch_id"]
        for wrong in ('{"notify": "x"}', '{"notify": [1]}', '{"notify": [null]}'):
            with pytest.raises(psycopg.Error) as refused:
                sql.execute(submit.encode(), [wrong])
            assert refused.value.sqlstate == "BM002"


async def test_a_batch_submitted_in_several_calls_is_delivered_once(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, range(5_000), notify=receiver.url)
        await batch.wait()
        await delivered(mill, batch)
    assert len(receiver.deliveries) == 1


async def test_a_repeated_submit_registers_its_target_once(mill: Mill, receiver: Receiver) -> None:
    work = work_on(mill)
    first = await mill.submit(work, [1], notify=receiver.url, idempotency_key="k")
    again = await mill.submit(work, [1], notify=receiver.url, idempotency_key="k")
    assert again.id == first.id and len(await again.notifications()) == 1
    with pytest.raises(IdempotencyConflict):
        await mill.submit(work, [1], notify=ADA, idempotency_key="k")


@pytest.mark.parametrize(
    "target",
    [
        "",
        "ada",
        "@example.org",
        "ada@",
        "ada@example..org",
        "Ada <ada@example.org>",
        "ada@example.org, eve@evil.example",
        "ada@example.org\r\nBcc: eve@evil.example",
        "ada@example.org\n",
        "ada@example.org\0",
        "ada@exämple.org",
        f"{'a' * 65}@example.org",
        f"ada@{'a.' * 130}org",
        '"ada eve"@example.org',
        "ftp://example.org/",
        "https://",
        "https://user:pass@example.org/",
        "https://example.org/\r\nx: y",
        "{url} b",
        "javascript:alert(1)",
        "{url}" + "a" * 2_000,
    ],
)
async def test_an_invalid_target_is_refused_and_nothing_is_written(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection, target: str
) -> None:
    target = target.replace("{url}", receiver.url)
    work = work_on(mill)
    batch = await mill.submit(work, [1])
    for attempt in (
        mill.submit(work, [1], notify=[target]),
        batch.notify(target),
        mill.webhooks.save(target),
    ):
        with pytest.raises(InvalidInput):
            await attempt
    assert rows(sql, COUNTS) == [(0,), (0,)]
    assert one(sql, "select count(*) from batchmill.batches") == (1,)


@pytest.mark.parametrize("target", [7, [7], {"url": "https://example.org"}, [None]])
async def test_a_target_that_is_not_text_is_refused(mill: Mill, target: Any) -> None:
    with pytest.raises(InvalidInput, match="list of URLs and email addresses"):
        await mill.submit(work_on(mill), [1], notify=target)


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1/hook",
        "http://169.254.169.254/latest",
        "http://[::1]:9/hook",
        "http://127.0.0.1:1/hook",
        "http://localhost:1/hook",
        "http://2130706433/hook",
        "http://[64:ff9b::7f00:1]/hook",
    ],
)
async def test_an_address_that_is_not_public_is_refused(
    mill: Mill, sql: psycopg.Connection, url: str
) -> None:
    work = work_on(mill)
    batch = await mill.submit(work, [1])
    for attempt in (
        mill.submit(work, [1], notify=url),
        batch.notify(url),
        mill.webhooks.save(url),
    ):
        with pytest.raises(InvalidInput, match="not allowed"):
            await attempt
    assert rows(sql, COUNTS) == [(0,), (0,)]


async def test_a_forbidden_address_that_bypassed_the_check_is_not_called(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    """It was registered with SQL, or its name has a different address since."""
    work = work_on(mill)
    await mill.webhooks.save(receiver.url)
    batch = await mill.submit(work, [1])
    sql.execute("select batchmill.notify_batch(%s, %s)", [batch.id, ["http://127.0.0.1:1/hook"]])
    async with mill.running():
        await batch.wait()
        (job,) = await delivered(mill, batch)
    assert (job.state, job.error and job.error.code) == ("failed", "address_refused")
    assert receiver.deliveries == []


async def test_a_batch_has_at_most_20_targets(mill: Mill, receiver: Receiver) -> None:
    work = work_on(mill)
    many = [f"{n}@example.org" for n in range(20)]
    batch = await mill.submit(work, [1], notify=many)
    with pytest.raises(InvalidInput, match="at most 20"):
        await batch.notify(ADA)
    assert len(await batch.notify(many[0])) == 20


async def test_a_mail_address_is_refused_without_mail_settings(
    receiver: Receiver, dsn: str, sql: psycopg.Connection
) -> None:
    async with Mill(dsn) as mill:
        work = work_on(mill)
        with pytest.raises(InvalidInput, match="set BATCHMILL_SMTP_URL and BATCHMILL_MAIL_FROM"):
            await mill.submit(work, [1], notify=ADA)
        assert nothing_is_left(sql)


async def test_a_webhook_is_refused_without_the_notify_extra(
    receiver: Receiver, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "find_spec", lambda _: None)
    async with Mill(dsn) as mill:
        assert mill.engine.builtin_tasks == {}
        with pytest.raises(InvalidInput, match=r"batchmill\[notify\]"):
            await mill.webhooks.save(receiver.url)


async def test_a_delivery_waits_for_a_worker_with_the_notify_extra(
    mill: Mill, receiver: Receiver, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = work_on(mill)
    batch = await mill.submit(work, [1], notify=receiver.url)
    with monkeypatch.context() as bare:
        bare.setattr(handlers, "find_spec", lambda _: None)
        async with mill.on(dsn).running():
            await batch.wait()
    job = (await only_notification(batch)).job_id
    assert job and (await mill.job(job).get()).state == "ready"
    async with mill.running():
        assert await mill.job(job).result() == "The webhook answered 204."


async def test_unknown_batches_and_webhooks_are_not_found(mill: Mill, receiver: Receiver) -> None:
    for attempt in (
        mill.batch(uuid4()).notify(receiver.url),
        mill.batch(uuid4()).notifications(),
        mill.webhooks.get(uuid4()),
        mill.webhooks.get("nonsense"),
        mill.webhooks.rotate(uuid4()),
        mill.webhooks.enable(uuid4()),
        mill.webhooks.delete(uuid4()),
    ):
        with pytest.raises(NotFound):
            await attempt


async def test_save_returns_the_secret_and_lists_do_not(mill: Mill, receiver: Receiver) -> None:
    hook = await mill.webhooks.save(receiver.url)
    assert (await mill.webhooks.save(receiver.url)) == hook
    (listed,) = await mill.webhooks.all()
    assert listed == await mill.webhooks.get(str(hook.id))
    assert (listed.id, listed.url, listed.secret) == (hook.id, receiver.url, None)
    assert hook.secret and hook.secret not in repr(hook)
    await mill.webhooks.delete(hook.id)
    assert await mill.webhooks.all() == []


async def test_deleting_a_batch_deletes_its_notifications(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    work = work_on(mill)
    batch = await mill.submit(work, [1], notify=[receiver.url, ADA], delay=3600)
    await batch.cancel()
    jobs = [each.job_id for each in await batch.notifications()]
    with pytest.raises(Conflict):
        await (await mill.submit(work, [1], delay=60)).delete()
    await batch.delete()
    assert one(sql, "select count(*) from batchmill.notifications") == (0,)
    async with mill.running():
        results = [await mill.job(job).result() for job in jobs if job]
    assert all("deleted" in result for result in results)
    assert receiver.deliveries == []


async def test_a_delivery_outlives_its_expired_batch(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection, dsn: str
) -> None:
    work = work_on(mill)
    batch = await mill.submit(work, [1], notify=receiver.url, expires_in=60)
    await mill.limits.pause("task:batchmill.webhook")
    async with mill.running():
        await batch.wait()
    async with Mill(later(dsn, "1d")) as ahead:
        await ahead.database.value("expire")
        assert one(sql, "select count(*) from batchmill.batches") == (0,)
        await ahead.limits.resume("task:batchmill.webhook")
    async with mill.on(later(dsn, "1d")).running():
        assert (await receiver.wait_for()).data["batch_id"] == str(batch.id)
    async with Mill(later(dsn, "3d")) as ahead:
        await ahead.database.value("expire")
    assert one(sql, "select count(*) from batchmill.notifications") == (0,)


async def test_delivery_tasks_cannot_be_used_by_callers(mill: Mill, receiver: Receiver) -> None:
    """A caller who could submit to them could call webhooks of others."""
    await mill.webhooks.save(receiver.url)
    for attempt in (
        mill.submit("batchmill.webhook", [{}]),
        mill.enqueue("batchmill.webhook", {}),
        mill.schedules.save("s", "* * * * *", "batchmill.webhook", {}),
        mill.submit(work_on(mill), [1], on_finish="batchmill.webhook"),
    ):
        with pytest.raises(UnknownTask):
            await attempt
    with pytest.raises(InvalidInput, match="are reserved"):
        mill.task(name="batchmill.mine")(lambda n: n)
