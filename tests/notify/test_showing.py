"""Delivery tasks are shown only when they have work, and they get few slots."""

import psycopg
import pytest

from batchmill import Mill, WorkerOptions
from batchmill.worker.session import pools_of
from tests.library.tools import one
from tests.notify.receiver import Receiver
from tests.notify.tools import ADA, delivered, work_on


async def shown(mill: Mill) -> dict[str, tuple[int, int]]:
    """What `status` shows for each task: the number of ready jobs and of workers."""
    overview = await mill.engine.store.overview.overview()
    return {task["name"]: (task["ready"], task["workers"]) for task in overview.tasks}


async def test_delivery_tasks_are_shown_while_deliveries_wait(
    mill: Mill, receiver: Receiver
) -> None:
    work = work_on(mill)
    async with mill.running():
        await (await mill.submit(work, [1])).wait()
        assert await shown(mill) == {"work": (0, 1)}
    async with mill:
        batch = await mill.submit(work, [1], notify=receiver.url, delay=3600)
        await batch.cancel()
        assert await shown(mill) == {"work": (0, 0), "batchmill.webhook": (1, 0)}


async def test_job_lists_show_deliveries_only_if_their_task_is_given(
    mill: Mill, receiver: Receiver
) -> None:
    work = work_on(mill)
    async with mill.running():
        batch = await mill.submit(work, [1], notify=[receiver.url, ADA])
        await batch.wait()
        await delivered(mill, batch)
        assert [job.task for job in await mill.jobs()] == ["work"]
        assert len(await mill.jobs(task="batchmill.webhook")) == 1
        assert len(await mill.jobs(task="batchmill.email")) == 1
    assert set(mill.tasks) == {"work"}


async def test_saving_a_webhook_registers_the_delivery_tasks(
    mill: Mill, receiver: Receiver, sql: psycopg.Connection
) -> None:
    known = "select array_agg(name order by name) from batchmill.tasks"
    work = work_on(mill)
    await mill.submit(work, [1])
    assert one(sql, known) == (["work"],)
    await mill.webhooks.save(receiver.url)
    assert one(sql, known) == (["batchmill.email", "batchmill.webhook", "work"],)


@pytest.mark.parametrize(("concurrency", "small"), [(1, 1), (9, 1), (100, 10)])
def test_delivery_tasks_get_a_small_part_of_a_workers_slots(
    mill: Mill, concurrency: int, small: int
) -> None:
    pools = pools_of(mill, WorkerOptions(concurrency=concurrency))
    assert pools == {"batchmill.webhook": small, "batchmill.email": small}
    larger = WorkerOptions(concurrency=concurrency, pools={"batchmill.webhook": 50})
    assert pools_of(mill, larger)["batchmill.webhook"] == 50
