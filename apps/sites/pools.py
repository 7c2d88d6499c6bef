"""The pools: one for each phase, with the processors of all servers.

A pool is the limit of its phase, which counts over all servers. A server has more slots for a phase
than the limit allows at first, so that the pool can be enlarged while it runs.
"""

from collections.abc import Sequence
from typing import Any

from apps.sites.mill import mill
from apps.sites.phases import PHASES, PREFIX, Phase, task_of
from batchmill import LimitRecord, Pool, Processor, ProcessorState

STATES = {
    ProcessorState.IDLE: "idle",
    ProcessorState.BUSY: "busy",
    ProcessorState.BROKEN: "error",
}


async def read_pools(tenant: str | None) -> list[dict[str, Any]]:
    """Jobs of other tenants are not shown; None shows all."""
    limits = {limit.name: limit for limit in await mill.limits.all()}
    pools = await mill.pools()
    return [
        pool_view(
            phase,
            limits.get(f"task:{task_of(phase)}"),
            [pool for pool in pools if pool.task == task_of(phase)],
            tenant,
        )
        for phase in PHASES
    ]


def pool_view(
    phase: Phase, limit: LimitRecord | None, pools: Sequence[Pool], tenant: str | None
) -> dict[str, Any]:
    size = limit.slots if limit else None
    return {
        "phase": phase,
        "size": size,
        "busy": sum(pool.busy for pool in pools),
        "error": sum(pool.broken for pool in pools),
        "isPaused": size == 0,
        "servers": [
            {
                "worker": pool.worker,
                "processors": [
                    processor_view(each, tenant) for each in shown_processors(pool, size)
                ],
            }
            for pool in pools
        ],
    }


def shown_processors(pool: Pool, size: int | None) -> list[Processor]:
    """As many as the pool may use on this server, and all that are not idle."""
    used = [each for each in pool.processors if each.state is not ProcessorState.IDLE]
    idle = [each for each in pool.processors if each.state is ProcessorState.IDLE]
    most = pool.size if size is None else min(size, pool.size)
    shown = {each.name for each in (*used, *idle[: max(0, most - len(used))])}
    return [each for each in pool.processors if each.name in shown]


def processor_view(processor: Processor, tenant: str | None) -> dict[str, Any]:
    is_own = tenant is None or processor.tenant == tenant
    return {
        "name": processor.name.removeprefix(PREFIX),
        "state": STATES[processor.state],
        "since": processor.since,
        "runId": processor.batch_id if is_own else None,
        "jobId": processor.job_id if is_own else None,
        "problem": processor.problem,
    }
