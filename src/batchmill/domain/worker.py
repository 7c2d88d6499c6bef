"""A worker as operators see it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """`lease_seconds` is how long its lease lasts without another heartbeat. A worker whose lease
    has lapsed is `lost`."""

    id: int
    name: str
    version: str
    tasks: list[str]
    concurrency: int
    state: str
    started_at: datetime
    lease_seconds: float
    running: int
