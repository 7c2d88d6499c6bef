"""Bodies of requests and responses of the routes for operators."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field

from batchmill.domain.pool import ProcessorState
from batchmill.service.schemas import Record, Strict


class WorkerRun(Strict):
    seconds: float = Field(default=50, gt=0, le=3_600)
    grace: float = Field(
        default=5, ge=0, le=3_600, description="Seconds that running jobs then have to finish."
    )


class WorkerRunEnd(BaseModel):
    empty: bool = Field(description="False if jobs were still due when the time was over.")


class Tenant(BaseModel):
    tenant: str
    erasing_since: datetime | None
    rows: dict[str, int] = Field(description="The number of its rows in each table that has some.")


class TenantErasure(Record):
    tenant: str
    requested_at: datetime


class Processor(Record):
    """A slot. `since` is when its job started, or when it broke."""

    name: str
    state: ProcessorState
    task: str | None
    job_id: int | None
    batch_id: UUID | None
    tenant: str | None
    since: datetime | None
    problem: str | None = Field(
        description="Why it is broken: `ignores_cancellation` or `child_ended`."
    )


class Pool(Record):
    worker_id: int
    worker: str
    task: str | None = Field(description="Null for the slots that the other tasks share.")
    size: int
    idle: int
    busy: int
    broken: int
    prefetched: int = Field(description="Jobs that were claimed before a slot is free.")
    processors: list[Processor] = Field(description="Up to 100: broken and busy ones first.")


class Pools(BaseModel):
    pools: list[Pool]


class Worker(Record):
    id: int
    name: str
    version: str
    tasks: list[str]
    concurrency: int
    state: str = Field(description="`live`, `draining` or `lost`.")
    started_at: datetime
    lease_seconds: float = Field(description="Seconds until its lease lapses; negative after that.")
    running: int


class Workers(BaseModel):
    workers: list[Worker]


class TaskStatistics(Record):
    name: str
    ready: int
    scheduled: int
    running: int
    workers: int
    oldest_ready_seconds: float | None
    completed: int
    failed: int
    cancelled: int
    jobs_per_second: float
    average_wait_seconds: float | None
    average_run_seconds: float | None


class Statistics(Record):
    """All numbers are of one moment, `at`."""

    at: datetime
    since: datetime = Field(description="Jobs that ended before are not counted.")
    cap: int = Field(description="Counts of waiting jobs stop here: there may be more.")
    tasks: list[TaskStatistics]
    total: TaskStatistics
