"""Runs that are repeated by a schedule, and rows that are no longer needed."""

from typing import Any
from uuid import UUID

from apps.sites import runs
from apps.sites.mill import mill
from apps.sites.models import Model
from apps.sites.prompts import GivenPrompt
from apps.sites.stages import Order
from apps.sites.tables import SITES
from batchmill import Client, Job, ScheduleRecord

MONTHLY = "0 6 1 * *"
NAME = "sites.repeat:"


class Repeat(Model):
    """What is repeated: the address and the prompts of a run. Without prompts, because the run had
    not ended when its schedule was saved, they are formed again."""

    run: UUID
    url: str
    prompts: list[GivenPrompt] | None = None


@mill.task(name="sites.repeat", entry=True)
async def repeat(job: Job, given: Repeat) -> UUID:
    """Begins a run like the earlier one, once for each job."""
    client = mill.as_tenant(job.tenant)
    order = Order(url=given.url, prompts=given.prompts)
    is_kept = await runs.runs_of(client, ids=[given.run])
    (begun,) = await runs.begin(
        client, [order], key=f"repeat {job.id}", repeats=given.run if is_kept else None
    )
    return begun


@mill.task(name="sites.forget")
async def forget(job: Job) -> None:
    """Deletes rows of runs that have expired. A schedule runs it every night."""
    while await SITES.rows(job.mill, "delete_expired_runs"):
        pass


async def save_schedule(client: Client, id: UUID, cron: str, timezone: str) -> ScheduleRecord:
    """One schedule for each site of a tenant. It has the prompts, because the run may expire."""
    run = await runs.get(client, id)
    prompts = await runs.prompts_of(client, id) if run["result"] else None
    payload = Repeat(run=id, url=run["url"], prompts=prompts)
    return await client.schedules.save(
        f"{NAME}{run['site']}", cron, repeat, payload, timezone=timezone
    )


async def delete_schedule(client: Client, id: UUID) -> None:
    run = await runs.get(client, id)
    await client.schedules.delete(f"{NAME}{run['site']}")


async def schedules_of(client: Client) -> list[dict[str, Any]]:
    return [
        {
            "site": found.name.removeprefix(NAME),
            "cron": found.cron,
            "timezone": found.timezone,
            "nextAt": found.next_at,
        }
        for found in await client.schedules.all()
        if found.name.startswith(NAME)
    ]
