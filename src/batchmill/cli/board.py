"""The progress of a batch, computed from its events."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from batchmill.domain.batch import BatchRecord, BatchState
from batchmill.domain.event import STATE_SYNC, Event

RECENT_FAILURES = 5


@dataclass(slots=True)
class Stage:
    """Counts of the jobs that entered this stage."""

    name: str
    advanced: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    running: int = 0

    @property
    def ended(self) -> int:
        return self.completed + self.failed + self.cancelled

    @property
    def left(self) -> int:
        return self.advanced + self.ended


@dataclass(frozen=True, slots=True)
class Failure:
    job_id: int | None
    task: str
    code: str
    message: str


@dataclass(slots=True)
class Board:
    total: int
    state: BatchState
    stages: dict[str, Stage] = field(default_factory=dict)
    running: dict[int, Stage] = field(default_factory=dict)
    failures: deque[Failure] = field(default_factory=lambda: deque(maxlen=RECENT_FAILURES))
    retries: int = 0
    duplicates: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None

    @classmethod
    def of(cls, batch: BatchRecord) -> "Board":
        board = cls(batch.total, batch.state, duplicates=batch.duplicates)
        board.stage(batch.task)
        return board

    @property
    def completed(self) -> int:
        return sum(stage.completed for stage in self.stages.values())

    @property
    def failed(self) -> int:
        return sum(stage.failed for stage in self.stages.values())

    @property
    def cancelled(self) -> int:
        return sum(stage.cancelled for stage in self.stages.values())

    @property
    def ended(self) -> int:
        return sum(stage.ended for stage in self.stages.values())

    @property
    def seconds(self) -> float:
        """The duration of the batch, up to its newest event."""
        if self.first_at is None or self.last_at is None:
            return 0.0
        return (self.last_at - self.first_at).total_seconds()

    def stage(self, name: str) -> Stage:
        return self.stages.setdefault(name, Stage(name))

    def expected(self, stage: Stage) -> int:
        """The number of jobs that may reach a stage: all but those that ended in an earlier one."""
        expected = self.total
        for earlier in self.stages.values():
            if earlier is stage:
                break
            expected -= earlier.ended
        return expected

    def see(self, event: Event) -> None:
        self.first_at = self.first_at or event.at
        self.last_at = event.at
        if event.type in ("batch_started", "batch_retried"):
            self.state = BatchState.PROCESSING
        if event.type == STATE_SYNC:
            self._start_over(event.data["batch"])
        elif event.job_id is not None:
            self._see_job(event, event.job_id)

    def _start_over(self, batch: dict[str, Any]) -> None:
        """The earlier events are missing, so all jobs count for the first stage of the batch."""
        self.stages, self.running, self.state = {}, {}, BatchState(batch["state"])
        stage = self.stage(batch["task"])
        stage.completed, stage.failed = batch["completed"], batch["failed"]
        stage.cancelled = batch["cancelled"]

    def _see_job(self, event: Event, job_id: int) -> None:
        if event.type == "job_progress":
            return
        if before := self.running.pop(job_id, None):
            before.running -= 1
        stage = self.stage(event.data.get("from") or event.data["task"])
        match event.type:
            case "job_started":
                self.running[job_id] = stage
                stage.running += 1
            case "job_stage":
                stage.advanced += 1
                self.stage(event.data["task"])
            case "job_completed":
                stage.completed += 1
            case "job_failed":
                stage.failed += 1
                self.failures.append(_failure(event))
            case "job_cancelled":
                stage.cancelled += 1
            case "job_retrying" if "manual" in event.data:
                self._take_back(stage, job_id)
            case "job_retrying":
                self.retries += 1

    def _take_back(self, stage: Stage, job_id: int) -> None:
        """After a manual retry, the job no longer counts as failed."""
        stage.failed -= 1
        kept = [failure for failure in self.failures if failure.job_id != job_id]
        self.failures = deque(kept, RECENT_FAILURES)


def _failure(event: Event) -> Failure:
    return Failure(event.job_id, event.data["task"], event.data["code"], event.data["message"])
