"""Webhook deliveries, as their receivers see them."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import psycopg
import pytest

from batchmill import JobState, Mill
from tests.docs.pages import ROOT, Page
from tests.invariants import violations
from tests.library.tools import one
from tests.notify.receiver import Receiver, status
from tests.notify.tools import (
    delivered,
    delivery_of,
    only_notification,
    running_later,
    settled,
    work_on,
)


async def test_a_finished_batch_is_delivered_with_a_valid_signature(
    mill: Mill, receiver: Receiver
) -> None:
    work = work_on(mill)
    secret = (await mill.webhooks.save(receiver.url)).secret
    async with mill.running():
        batch = await mill.submit(
            work, [1, 2, "fail"], notify=receiver.url, labels={"meet": "Spring"}, tenant="default"
        )
        delivery = await receiver.wait_for()
    assert secret and secret.startswith("whsec_")
    record = await batch.get()
    assert record.finished_at is not None
    received = delivery.verified_by(secret)
    assert received["type"] == "batch.finished"
    assert datetime.fromisoformat(received["timestamp"]) == record.finished_at
    assert received["data"] == {
        "batch_id": str(batch.id),
        "task": "work",
        "tenant": "default",
        "state": "partial",
        "total": 3,
        "completed": 2,
        "failed": 1,
        "cancelled": 0,
        "duplicates": 0,
        "generation": 1,
        "labels": {"meet": "Spring"},
    }
    assert delivery.request == "POST /hook HTTP/1.1"
    assert delivery.headers["content-type"] == "application/json"


async def test_the_receiver_in_the_docs_accepts_a_delivery(
    mill: Mill, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    work = work_on(mill)
    secret = (await mill.webhooks.save(receiver.url)).secret
    async with mill.running():
        batch = await mill.submit(work, [1], notify=receiver.url)
        delivery = await receiver.wait_for()
    page = Page(ROOT / "docs/howto/notifications.md")
    (block,) = (block for block in page.blocks("python") if "class Receiver" in block.text)
    exec(block.text, names := {})
    shown = names["Receiver"](secret)
    assert [shown.receive(delivery.headers, delivery.body) for _ in range(2)] == [204, 204]
    assert shown.receive(delivery.headers, delivery.body + b" ") == 401
    assert capsys.readouterr().out == f"{batch.id} completed\n"


async def test_a_delivery_is_not_signed_with_another_secret(mill: Mill, receiver: Receiver) -> None:
    work = work_on(mill)
    await mill.webhooks.save(receiver.url)
    other = (await mill.webhooks.save(receiver.url, tenant="other")).secret
    async with mill.running():
        await mill.submit(work, [1], notify=receiver.url)
        delivery = await receiver.wait_for()
    assert other and not delivery.signed_by(other)


async def test_a_cancelled_batch_is_delivered(mill: Mill, receiver: Receiver) -> None:
    work = work_on(mill)
    batch = await mill.submit(work, [1], notify=receiver.url, delay=3600)
    await batch.cancel()
    async with mill.running():
        assert (await receiver.wait_for()).data["state"] == "cancelled"


async def test_a_batch_that_is_complete_at_submit_is_delivered(
    mill: Mill, receiver: Receiver
) -> None:
    from batchmill import Item

    work = work_on(mill)
    async with mill.running():
        await (await mill.submit(work, [Item(1, cache_key="k")])).wait()
        batch = await mill.submit(work, [Item(1, cache_key="k")], notify=receiver.url)
        assert (await receiver.wait_for()).data["batch_id"] == str(batch.id)


async def test_a_retried_delivery_repeats_the_same_message(
    mill: Mill, receiver: Receiver, dsn: str
) -> None:
    receiver.answers = [status(500), status(503), status(200)]
    work = work_on(mill)
    secret = (await mill.webhooks.save(receiver.url)).secret
    assert secret
    async with mill.running():
        batch = await mill.submit(work, [1], notify=receiver.url)
        await receiver.wait_for(1)
    async with running_later(mill, dsn, "60s"):
        await receiver.wait_for(2)
    async with running_later(mill, dsn, "600s"):
        await receiver.wait_for(3)
    async with mill:
        assert (await delivery_of(mill, batch)).state is JobState.COMPLETED
    first, second, third = receiver.deliveries
    assert first.id == second.id == third.id
    assert first.body == second.body == third.body
    assert len({each.headers["webhook-timestamp"] for each in receiver.deliveries}) == 3
    assert all(each.signed_by(secret) for each in receiver.deliveries)


async def test_a_receiver_that_was_down_is_called_again(
    mill: Mill, receiver: Receiver, dsn: str
) -> None:
    work = work_on(mill)
    url = receiver.url
    await receiver.__aexit__()
    async with mill.running():
        batch = await mill.submit(work, [1], notify=url)
        await batch.wait()
        job = await settled(mill, batch)
    assert job.attempts[0]["code"] == "unreachable"
    async with receiver, running_later(mill, dsn, "60s") as ahead:
        assert await ahead.job(job.id).result() == "The webhook answered 204."
    assert len(receiver.deliveries) == 1


async def test_status_410_disables_the_webhook(mill: Mill, receiver: Receiver) -> None:
    receiver.answers = [status(410)]
    work = work_on(mill)
    hook = await mill.webhooks.save(receiver.url)
    async with mill.running():
        batch = await mill.submit(work, [1], notify=receiver.url)
        await batch.wait()
        (job,) = await delivered(mill, batch)
        assert (job.state, job.error and job.error.code, job.attempt) == (
            "failed",
            "webhook_gone",
            1,
        )
        record = await mill.webhooks.get(hook.id)
        assert record.disabled_at and record.disabled_because == "The webhook answered 410 Gone."
        silent = await mill.submit(work, [2], notify=receiver.url)
        await silent.wait()
        assert (await only_notification(silent)).job_id is None, (
            "A disabled webhook gets no deliveries."
        )

        receiver.answers = [status(200)]
        assert (await mill.webhooks.enable(hook.id)).disabled_at is None
        await mill.submit(work, [3], notify=receiver.url)
        await receiver.wait_for(2)
        await mill.job(job.id).retry()
        assert await mill.job(job.id).result() == "The webhook answered 200."
    assert receiver.deliveries[0].id == receiver.deliveries[-1].id


async def test_a_waiting_delivery_to_a_disabled_webhook_fails(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    work = work_on(mill)
    batch = await mill.submit(work, [1], notify=receiver.url, delay=3600)
    await batch.cancel()
    sql.execute("update batchmill.webhooks set disabled_at = now()")
    async with mill.running():
        (job,) = await delivered(mill, batch)
    assert job.error and job.error.code == "webhook_disabled"
    assert receiver.deliveries == []


async def test_a_redirect_is_a_failure_and_not_followed(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    receiver.answers = [status(307, location=receiver.url)]
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1], notify=receiver.url)
        await receiver.wait_for()
    async with mill:
        job = await delivery_of(mill, batch)
    assert (job.state, job.attempts[0]["code"]) == ("scheduled", "webhook_refused")
    assert len(receiver.deliveries) == 1


@pytest.mark.parametrize("code", [302, 400, 401, 404, 408, 409, 425, 429, 500, 502, 503, 504])
async def test_any_other_error_status_is_retried(mill: Mill, receiver: Receiver, code: int) -> None:
    receiver.answers = [status(code)]
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1], notify=receiver.url)
        await receiver.wait_for()
    async with mill:
        assert (await delivery_of(mill, batch)).state is JobState.SCHEDULED


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_retry_after_is_honoured(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection, form: str
) -> None:
    in_two_hours = datetime.now(UTC) + timedelta(hours=2)
    after = "7200" if form == "seconds" else format_datetime(in_two_hours, usegmt=True)
    receiver.answers = [status(429, retry_after=after)]
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1], notify=receiver.url)
        await receiver.wait_for()
    async with mill:
        job = await delivery_of(mill, batch)
    now = one(sql, "select now()")[0]
    assert timedelta(minutes=110) < job.run_at - now < timedelta(minutes=130)


async def test_a_receiver_that_does_not_answer_times_out(
    mill: Mill, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from batchmill.fetch.limits import FetchLimits
    from batchmill.notify import webhook

    monkeypatch.setattr(webhook, "LIMITS", FetchLimits(total=0.2))
    webhook.fetcher.cache_clear()

    async def never(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    receiver.answers = [never]
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1], notify=receiver.url)
        await batch.wait()
        job = await settled(mill, batch)
    webhook.fetcher.cache_clear()
    assert job.attempts[0]["code"] == "too_slow"


async def test_a_delivery_fails_after_eight_attempts(
    mill: Mill, receiver: Receiver, dsn: str
) -> None:
    receiver.answers = [status(500)]
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1], notify=receiver.url)
        await receiver.wait_for(1)
    for attempt in range(2, 9):
        async with running_later(mill, dsn, f"{attempt - 1}d"):
            await receiver.wait_for(attempt)
    async with mill:
        job = await delivery_of(mill, batch)
        assert (await batch.get()).state == "completed", (
            "A failed delivery does not affect the batch."
        )
    assert (job.state, job.attempt) == ("failed", 8)
    assert {each.id for each in receiver.deliveries} == {receiver.deliveries[0].id}


async def test_every_generation_is_delivered_once(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1, "fail"], notify=receiver.url)
        for generation in (1, 2, 3):
            received = (await receiver.wait_for(generation)).data
            assert (received["generation"], received["failed"]) == (generation, 1)
            await delivered(mill, batch)
            await batch.retry()
        await receiver.wait_for(4)
    ids = [each.id for each in receiver.deliveries]
    assert len(set(ids)) == 4
    assert violations(sql) == []


async def test_a_delivery_has_the_counters_of_its_own_generation(
    mill: Mill, receiver: Receiver
) -> None:
    """Also if the batch is retried before the delivery is sent."""
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, ["fail"], notify=receiver.url)
        await receiver.wait_for(1)
        await mill.limits.pause("task:batchmill.webhook")
        await batch.retry()
        await batch.wait()
        await batch.retry()
        await batch.wait()
        await mill.limits.resume("task:batchmill.webhook")
        await receiver.wait_for(3)
    received = [(each.data["generation"], each.data["failed"]) for each in receiver.deliveries]
    assert sorted(received) == [(1, 1), (2, 1), (3, 1)]


async def test_two_workers_deliver_each_batch_once(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    work = work_on(mill)
    async with mill.running(), mill.on().running():
        batches = [await mill.submit(work, range(3), notify=receiver.url) for _ in range(30)]
        for batch in batches:
            await batch.wait()
            await delivered(mill, batch)
    received = Counter(each.data["batch_id"] for each in receiver.deliveries)
    assert received == {str(batch.id): 1 for batch in batches}
    assert len({each.id for each in receiver.deliveries}) == 30
    assert violations(sql) == []


async def test_both_secrets_sign_for_a_day_after_a_rotation(
    mill: Mill, receiver: Receiver, dsn: str
) -> None:
    work = work_on(mill)
    first = await mill.webhooks.save(receiver.url)
    second = await mill.webhooks.rotate(first.id)
    assert first.secret and second.secret and first.secret != second.secret
    assert (await mill.webhooks.save(receiver.url)).secret == second.secret
    async with mill.running():
        await mill.submit(work, [1], notify=receiver.url)
        delivery = await receiver.wait_for(1)
    assert delivery.verified_by(first.secret) == delivery.verified_by(second.secret)
    newest_first = delivery.headers["webhook-signature"].split(" ")
    assert len(newest_first) == 2

    async with running_later(mill, dsn, "23h") as ahead:
        await ahead.submit(work, [1], notify=receiver.url)
        assert (await receiver.wait_for(2)).signed_by(first.secret)
    async with running_later(mill, dsn, "25h") as ahead:
        await ahead.submit(work, [1], notify=receiver.url)
        delivery = await receiver.wait_for(3)
    assert delivery.signed_by(second.secret) and not delivery.signed_by(first.secret)


async def test_a_second_rotation_removes_the_oldest_secret_immediately(
    mill: Mill, receiver: Receiver
) -> None:
    work = work_on(mill)
    hook = await mill.webhooks.save(receiver.url)
    secrets = [hook.secret] + [(await mill.webhooks.rotate(hook.id)).secret for _ in range(2)]
    async with mill.running():
        await mill.submit(work, [1], notify=receiver.url)
        delivery = await receiver.wait_for()
    assert [delivery.signed_by(secret or "") for secret in secrets] == [False, True, True]


async def test_a_deleted_webhook_is_not_called(mill: Mill, receiver: Receiver) -> None:
    work = work_on(mill)
    hook = await mill.webhooks.save(receiver.url)
    waiting = await mill.submit(work, [1], notify=receiver.url, delay=3600)
    await waiting.cancel()
    later = await mill.submit(work, [1], notify=receiver.url)
    await mill.webhooks.delete(hook.id)
    async with mill.running():
        await later.wait()
        (job,) = await delivered(mill, waiting)
    assert job.result == "The webhook or its batch was deleted."
    assert (await only_notification(later)).job_id is None
    assert (await only_notification(later)).url is None
    assert receiver.deliveries == []
