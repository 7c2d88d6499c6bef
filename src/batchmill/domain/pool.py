"""Pools: the slots of each stage on each worker, and what each slot does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import count
from typing import Any
from uuid import UUID

from batchmill.domain.task import BUILTIN

# The key of the slots that the tasks without a pool of their own share.
SHARED = ""
# Broken and busy processors of a pool are listed first. Counts are complete in any case.
MOST_LISTED = 100


class ProcessorState(StrEnum):
    IDLE = "idle"
    BUSY = "busy"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """One slot of a pool. `since` is when its job started or when the slot broke. `problem` says
    why it is broken."""

    name: str
    state: ProcessorState
    task: str | None = None
    job_id: int | None = None
    batch_id: UUID | None = None
    tenant: str | None = None
    since: datetime | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The slots that a worker has for one task. Tasks without slots of their own share a pool, and
    its `task` is None. `prefetched` counts claimed jobs for which no slot is free yet."""

    worker_id: int
    worker: str
    task: str | None
    size: int
    idle: int
    busy: int
    broken: int
    prefetched: int
    processors: list[Processor]


def pools_of(worker: Mapping[str, Any]) -> Iterator[Pool]:
    """The pools of a worker, from its sizes, its last report of slots, and the jobs that it runs.
    The pools of built-in tasks are left out while they do nothing."""
    sizes: dict[str, int] = dict(worker["pools"])
    if not set(worker["tasks"]) <= sizes.keys():
        sizes[SHARED] = worker["concurrency"]
    for name in sorted(sizes, key=lambda name: (name == SHARED, name)):
        pool = _pool(worker, name, sizes[name])
        if not name.startswith(BUILTIN) or pool.busy or pool.broken:
            yield pool


def _pool(worker: Mapping[str, Any], name: str, size: int) -> Pool:
    jobs = [job for job in worker["running"] if job["pool"] == name]
    reported = [slot for slot in worker["slots"] if slot["pool"] == name]
    broken = {slot["number"]: slot for slot in reported if "broken" in slot}
    running = sum(counted["jobs"] for counted in worker["counts"] if counted["pool"] == name)
    busy = min(running, size)
    return Pool(
        worker_id=worker["id"],
        worker=worker["name"],
        task=name or None,
        size=size,
        # The sum can exceed `size`: a thread that does not stop is broken, but its slot can run
        # another job.
        idle=max(0, size - busy - len(broken)),
        busy=busy,
        broken=len(broken),
        prefetched=running - busy,
        processors=_processors(name, size, jobs[:busy], reported, broken),
    )


def _processors(
    name: str,
    size: int,
    jobs: list[dict[str, Any]],
    reported: list[dict[str, Any]],
    broken: dict[int, dict[str, Any]],
) -> list[Processor]:
    """Jobs keep the numbers that the worker has reported. Jobs that are not reported yet get the
    lowest free numbers in the order of their start. The worker uses the same rule."""
    known = {slot["job_id"]: slot["number"] for slot in reported if "broken" not in slot}
    numbers = {job["id"]: known[job["id"]] for job in jobs if job["id"] in known}
    taken = broken.keys() | set(numbers.values())
    free = (number for number in count(1) if number not in taken)
    shown = {number: _broken(_name(name, number), slot) for number, slot in broken.items()}
    for job in jobs:
        number = numbers.get(job["id"]) or next(free)
        shown[number] = _busy(_name(name, number), job)
    listed = dict(list(shown.items())[:MOST_LISTED])
    for number in range(1, size + 1):
        if len(listed) >= MOST_LISTED:
            break
        if number not in shown:
            listed[number] = Processor(name=_name(name, number), state=ProcessorState.IDLE)
    return [listed[number] for number in sorted(listed)]


def _name(pool: str, number: int) -> str:
    return f"{pool or 'shared'}-processor-{number}"


def _busy(name: str, job: Mapping[str, Any]) -> Processor:
    return Processor(
        name=name,
        state=ProcessorState.BUSY,
        task=job["task"],
        job_id=job["id"],
        batch_id=job["batch_id"] and UUID(job["batch_id"]),
        tenant=job["tenant"],
        since=datetime.fromisoformat(job["started_at"]),
    )


def _broken(name: str, slot: Mapping[str, Any]) -> Processor:
    return Processor(
        name=name,
        state=ProcessorState.BROKEN,
        task=slot["task"],
        job_id=slot.get("job_id"),
        since=datetime.fromisoformat(slot["since"]),
        problem=slot["broken"],
    )
