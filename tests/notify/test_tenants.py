"""Each tenant has its own webhooks and notifications."""

from uuid import UUID

import psycopg
import pytest

from batchmill import Mill, NotFound
from tests.library.tools import one
from tests.notify.mailbox import Mailbox
from tests.notify.receiver import Receiver
from tests.notify.tools import ADA, delivered, work_on


async def test_a_tenant_registers_a_webhook_and_gets_its_delivery(
    mill: Mill, receiver: Receiver
) -> None:
    work = work_on(mill)
    ada = mill.as_tenant("ada")
    hook = await ada.webhooks.save(receiver.url, tenant="bob")
    assert hook.tenant == "ada" and hook.secret
    batch = await ada.submit(work, [1], notify=receiver.url)
    (record,) = await ada.batch(batch.id).notifications()
    assert (record.tenant, record.webhook_id) == ("ada", hook.id)
    await ada.batch(batch.id).notify(ADA)
    async with mill.running():
        delivery = await receiver.wait_for()
        await delivered(mill, mill.batch(batch.id))
    assert delivery.verified_by(hook.secret)["data"]["tenant"] == "ada"


async def test_the_same_url_of_two_tenants_has_two_secrets(mill: Mill, receiver: Receiver) -> None:
    ada, bob = mill.as_tenant("ada"), mill.as_tenant("bob")
    hers, his = await ada.webhooks.save(receiver.url), await bob.webhooks.save(receiver.url)
    assert hers.id != his.id and hers.secret != his.secret
    assert [hook.id for hook in await ada.webhooks.all()] == [hers.id]
    assert len(await mill.webhooks.all()) == 2


async def test_webhooks_and_notifications_of_another_tenant_are_not_found(
    mill: Mill, receiver: Receiver
) -> None:
    work = work_on(mill)
    ada, bob = mill.as_tenant("ada"), mill.as_tenant("bob")
    his = await bob.webhooks.save(receiver.url)
    batch = await bob.submit(work, [1], notify=receiver.url)
    for attempt in (
        ada.webhooks.get(his.id),
        ada.webhooks.rotate(his.id),
        ada.webhooks.enable(his.id),
        ada.webhooks.delete(his.id),
        ada.batch(batch.id).notify(receiver.url),
        ada.batch(batch.id).notifications(),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert (await bob.webhooks.save(receiver.url)).secret == his.secret
    assert len(await bob.batch(batch.id).notifications()) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "insert into batchmill.webhooks (tenant, url, secret, created_at) values ('ada', 'x', 'y', now())",
        "update batchmill.webhooks set secret = 'mine'",
        "delete from batchmill.webhooks",
        "update batchmill.notifications set email = 'eve@evil.example', webhook_id = null",
        "select batchmill.notify_finished('{}', now())",
    ],
)
async def test_the_tenant_role_cannot_write_directly(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection, statement: str
) -> None:
    work = work_on(mill)
    await mill.as_tenant("ada").submit(work, [1], notify=receiver.url)
    with sql.transaction(force_rollback=True), pytest.raises(psycopg.errors.InsufficientPrivilege):
        sql.execute("set local role batchmill_tenant")
        sql.execute("set local batchmill.tenant = 'ada'; set local search_path = batchmill")
        sql.execute(statement.encode())


async def test_a_delivery_job_cannot_use_notifications_of_another_tenant(
    mill: Mill, receiver: Receiver, mailbox: Mailbox, sql: psycopg.Connection
) -> None:
    """A job with a forged payload would not reach any target."""
    work = work_on(mill)
    batch = await mill.submit(work, [1], notify=[receiver.url, ADA], delay=3600)
    await batch.cancel()
    sql.execute("update batchmill.jobs set tenant = 'eve' where batchmill.is_builtin(task)")
    async with mill.running():
        jobs = await delivered(mill, batch)
    assert all("deleted" in str(job.result) for job in jobs)
    assert receiver.deliveries == [] and mailbox.mails == []


async def test_deliveries_do_not_count_against_the_limits_of_users(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    work = work_on(mill)
    batch = await mill.submit(work, [1], notify=receiver.url, tenant="ada", delay=3600)
    await batch.cancel()
    for name in ("system", "tenant:ada", "tenant:*"):
        await mill.limits.set(name, slots=0)
    async with mill.running():
        await receiver.wait_for()
        await delivered(mill, batch)
    assert one(sql, "select count(*) from batchmill.limits where running <> 0") == (0,)
    assert isinstance(batch.id, UUID)
