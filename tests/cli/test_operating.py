"""Commands that show and change batches, jobs, limits and schedules."""

from datetime import datetime
from typing import Any

import psycopg
import pytest

from batchmill import Mill, WorkerOptions
from batchmill.cli.exits import ExitCode
from batchmill.store import overview
from batchmill.store.queries import queries
from tests.cli.conftest import Cli
from tests.cli.shop import Order
from tests.library.tools import until_event


async def finished(mill: Mill, *numbers: int, tenant: str = "default") -> Any:
    async with mill.running():
        batch = await mill.submit(
            "pack", [Order(number=number).model_dump() for number in numbers], tenant=tenant
        )
        await batch.wait()
    return batch


async def test_batches_can_be_filtered(cli: Cli, shop_mill: Mill) -> None:
    first = await finished(shop_mill, 1)
    second = await finished(shop_mill, 2, 13, tenant="acme")
    everything = await cli.json("batches")
    assert [batch["id"] for batch in everything] == [str(second.id), str(first.id)]
    assert everything[0]["waiting"] == 0
    assert datetime.fromisoformat(everything[0]["created_at"]).tzinfo
    for words in ("--state partial", "--tenant acme", "--count 1"):
        assert [batch["id"] for batch in await cli.json("batches", *words.split())] == [
            str(second.id)
        ]
    assert await cli.json("batches", "--task", "send") == []
    assert str(second.id) in "".join(await cli.lines("batches"))
    assert await cli.lines("batches", "--task", "send") == ["No batches found."]


async def test_pools_show_what_each_processor_runs(cli: Cli, shop_mill: Mill) -> None:
    assert await cli.lines("pools") == ["No worker is running."]
    async with shop_mill.running(WorkerOptions(pools={"hold": 2}, concurrency=3, grace=0)):
        batch = await shop_mill.submit("hold", [{"number": 1}])
        await until_event(batch, "job_started")
        (held,) = [job.id async for job in batch.jobs()]
        hold, shared = await cli.json("pools")
        assert (hold["task"], hold["busy"], hold["idle"]) == ("hold", 1, 1)
        assert (shared["task"], shared["size"]) == (None, 3)
        first = hold["processors"][0]
        assert (first["name"], first["state"]) == ("hold-processor-1", "busy")
        assert (first["job_id"], first["batch_id"]) == (held, str(batch.id))
        text = "\n".join(await cli.lines("pools"))
        assert "hold-processor-1" in text and "hold: 1 of 2" in text and "shared: 3 of 3" in text


async def test_jobs_can_be_filtered(cli: Cli, shop_mill: Mill) -> None:
    batch = await finished(shop_mill, 1, 13)
    waiting = await shop_mill.enqueue("send", {"number": 5}, tenant="acme")
    everything = await cli.json("jobs")
    assert [job["state"] for job in everything] == ["ready", "failed", "completed"]
    assert "payload" not in everything[0]
    (failed,) = await cli.json("jobs", "--state", "failed")
    assert (failed["code"], failed["message"]) == ("sold_out", "It is [bold]sold out.")
    for words in ("--tenant acme", "--state ready", "--task send --state ready"):
        assert [job["id"] for job in await cli.json("jobs", *words.split())] == [waiting.id]
    of_batch = await cli.json("jobs", "--batch", batch.id)
    assert [job["position"] for job in of_batch] == [0, 1]
    assert len(await cli.json("jobs", "--batch", batch.id, "--state", "completed")) == 1
    assert "sold_out It is [bold]sold out." in "".join(await cli.lines("jobs"))


async def test_one_job_is_shown_with_payload_error_and_attempts(cli: Cli, shop_mill: Mill) -> None:
    batch = await finished(shop_mill, 13)
    (job,) = [job async for job in batch.jobs()]
    text = "\n".join(await cli.lines("job", job.id))
    for words in ("sold_out: It is [bold]sold out.", '{"number":13}', "Attempts", "Permanent"):
        assert words in text
    data = await cli.json("job", job.id)
    assert data["payload"] == {"number": 13}
    assert data["error"]["code"] == "sold_out"
    assert data["attempts"][0]["attempt"] == 1


async def test_a_large_payload_is_truncated_without_full(cli: Cli, mill: Mill) -> None:
    @mill.task
    async def read(text: str) -> None: ...

    job = await mill.enqueue(read, "x" * 5_000)
    assert "(5,002 characters; --full shows all)" in "".join(await cli.lines("job", job.id))
    assert "x" * 5_000 in "".join(await cli.lines("job", job.id, "--full")).replace(" ", "")


async def test_batches_and_jobs_can_be_retried_and_cancelled(cli: Cli, shop_mill: Mill) -> None:
    batch = await finished(shop_mill, 1, 13)
    assert await cli.json("retry", batch.id) == {"retried": 1}
    assert await cli.lines("retry", batch.id) == ["Nothing to retry: the batch has no failed jobs."]
    assert await cli.lines("cancel", batch.id) == ["1 job cancelled."]
    assert await cli.json("cancel", batch.id) == {"cancelled": 0}
    single = await shop_mill.enqueue("send", {"number": 1})
    assert await cli.json("cancel", single.id) == {"cancelled": 1}
    assert await cli.lines("cancel", single.id) == ["Nothing to cancel: it has already ended."]


async def test_one_failed_job_is_retried_by_its_number(cli: Cli, shop_mill: Mill) -> None:
    batch = await finished(shop_mill, 13)
    (job,) = [job async for job in batch.jobs()]
    assert await cli.lines("retry", job.id) == ["1 job queued for retry."]
    assert (await batch.get()).waiting == 1


@pytest.mark.parametrize("name", ["task:pack", "provider:api"])
async def test_limits_can_be_set_listed_and_reset(cli: Cli, shop_mill: Mill, name: str) -> None:
    assert await cli.lines("limits") == ["There are no limits."]
    changed = await cli.json("limits", "set", name, "--slots", 3, "--rate", "10/1m")
    assert (changed["slots"], changed["rate"], changed["period"]) == (3, 10, 60)
    assert [limit["name"] for limit in await cli.json("limits")] == [name]
    assert await cli.json("limits") == await cli.json("limits", "list")
    assert "10 in 60 s" in "".join(await cli.lines("limits"))
    unlimited = await cli.json("limits", "set", name, "--slots", "unlimited")
    assert (unlimited["slots"], unlimited["rate"]) == (None, 10)
    await cli.lines("limits", "reset", name)
    assert await cli.json("limits") == []


@pytest.mark.parametrize("name", ["tenant:acme", "provider:api"])
async def test_a_limit_can_be_paused_and_resumed(cli: Cli, shop_mill: Mill, name: str) -> None:
    assert (await cli.json("pause", name))["paused"] is True
    assert "paused" in "".join(await cli.lines("limits"))
    assert await cli.lines("resume", name) == [f"{name} is resumed."]
    assert await cli.json("limits") == []


async def test_the_priority_of_a_task_is_set_and_restored(cli: Cli, shop_mill: Mill) -> None:
    assert await cli.json("priority", "pack", "5") == {"task": "pack", "priority": 5}
    assert await cli.lines("priority", "pack") == ["pack has the priority 0."]


async def test_pausing_a_task_that_is_not_registered_prints_a_warning(
    cli: Cli, shop_mill: Mill
) -> None:
    assert (
        await cli("pause", "task:pakc")
    ).stderr == "Warning: no task pakc is registered in this database. Check the name.\n"
    assert (await cli("pause", "task:pack/tenant:acme")).stderr == ""


async def test_schedules_can_be_listed_paused_resumed_and_deleted(
    cli: Cli, shop_mill: Mill
) -> None:
    assert await cli.lines("schedules") == ["There are no schedules."]
    await shop_mill.schedules.save("nightly", "0 3 * * *", "send", {"number": 1})
    (schedule,) = await cli.json("schedules")
    assert (schedule["name"], schedule["cron"], schedule["paused"]) == (
        "nightly",
        "0 3 * * *",
        False,
    )
    await cli.lines("schedules", "pause", "nightly")
    assert "paused" in "".join(await cli.lines("schedules", "list"))
    await cli.lines("schedules", "resume", "nightly")
    await cli.lines("schedules", "delete", "nightly")
    assert await cli.json("schedules") == []


async def test_the_status_of_an_empty_database_is_one_sentence(cli: Cli) -> None:
    assert await cli.lines("status") == [
        "No tasks are registered: no worker has used this database yet."
    ]


async def test_the_status_shows_waiting_running_and_failed_jobs(cli: Cli, shop_mill: Mill) -> None:
    await finished(shop_mill, 1, 13)
    await shop_mill.limits.pause("tenant:acme")
    async with shop_mill.running(WorkerOptions(grace=0)):
        await shop_mill.submit("send", [{"number": 1}] * 3, tenant="acme")
        await shop_mill.enqueue("hold", {"number": 1})
        await shop_mill.enqueue("send", {"number": 1}, delay=3_600)
        while (
            not (status := await cli.json("status"))["lanes"] or not task(status, "hold")["running"]
        ):
            pass
        text = "\n".join(await cli.lines("status"))
    assert (task(status, "send")["ready"], task(status, "send")["scheduled"]) == (3, 1)
    assert task(status, "send")["oldest_ready_seconds"] > 0
    assert task(status, "send")["workers"] == 1
    assert status["lanes"][0]["blocked_by"] == "tenant:acme"
    assert status["lanes"][0]["waiting"] == 3
    assert status["workers"][0]["state"] == "live"
    assert [(each["code"], each["jobs"]) for each in status["failures"]] == [("sold_out", 1)]
    for words in ("tenant:acme (paused)", "sold_out", "live", "Busiest lanes", "Limits in use"):
        assert words in text


async def test_the_counts_of_the_status_stop_at_a_cap(
    cli: Cli, shop_mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "CAP", 10)
    monkeypatch.setattr(overview, "LANE_CAP", 5)
    for _ in range(2):
        await shop_mill.submit("pack", [{"number": 1}] * 8)
        await shop_mill.submit("pack", [{"number": 1}] * 8, delay=60)
    for _ in range(20):
        await shop_mill.enqueue("send", {"number": 1})
    status = await cli.json("status")
    assert (status["cap"], status["lane_cap"]) == (10, 5)
    assert (task(status, "pack")["ready"], task(status, "pack")["scheduled"]) == (10, 10)
    assert task(status, "send")["ready"] == 10
    assert [lane["waiting"] for lane in status["lanes"]] == [5, 5]
    assert "10+" in "".join(await cli.lines("status"))


@pytest.mark.parametrize("name", ["tasks_overview", "busiest_lanes", "list_jobs"])
async def test_queries_for_the_status_and_for_lists_do_not_scan_whole_tables(
    mill: Mill, sql: psycopg.Connection[Any], name: str
) -> None:
    query = queries()[name]
    values = {"cap": 10, "minutes": 5, "lanes": 5, "count": 5} | dict.fromkeys(
        ("state", "task", "tenant")
    )
    with sql.transaction():
        sql.execute(queries()["walk_indexes"].encode())
        plan = sql.execute(f"explain {query}".encode(), values).fetchall()
    text = "\n".join(line for (line,) in plan)
    assert "Seq Scan on jobs" not in text
    assert "Seq Scan on finished" not in text


def running(status: Any, name: str) -> int:
    return task(status, name)["running"]


def task(status: Any, name: str) -> Any:
    return next(task for task in status["tasks"] if task["name"] == name)


async def test_usage_is_shown_in_groups(cli: Cli, shop_mill: Mill) -> None:
    assert await cli.lines("usage") == ["No usage was recorded."]
    first = await finished(shop_mill, 1, 13)
    await finished(shop_mill, 2, tenant="acme")
    assert [(each["name"], each["amount"]) for each in await cli.json("usage")] == [
        ("eur", "2469"),
        ("parcels", "2"),
    ]
    by_tenant = await cli.json("usage", "--by", "tenant", "--by", "day")
    assert [each["tenant"] for each in by_tenant] == ["acme", "acme", "default", "default"]
    for words in (["--batch", first.id], ["--tenant", "acme"]):
        assert [each["amount"] for each in await cli.json("usage", *words)] == ["1234.5", "1"]
    assert await cli.json("usage", "--task", "send") == []
    assert await cli.json("usage", "--since", "2030-01-01", "--until", "2030-12-31") == []
    text = "\n".join(await cli.lines("usage", "--by", "task"))
    assert "pack" in text and "2,469" in text
    assert (await cli("usage", "--since", "tomorrow")).exit_code == ExitCode.BAD_INPUT
