"""How an attempt can end. Handlers return a result, `Advance` or `Snooze`, or raise."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from batchmill.domain.failure import DETAIL_LENGTH, Failure, storable
from batchmill.domain.job import Claim, JobState, Progress
from batchmill.domain.retry import Retry
from batchmill.errors import InvalidInput

if TYPE_CHECKING:
    from batchmill.domain.task import Task


@dataclass(frozen=True, slots=True)
class Advance:
    """Return it from a handler to advance to another stage, with the payload for that stage."""

    task: "Task | str"
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Snooze:
    """Return it from a handler to run again after some seconds. It does not use up an attempt."""

    seconds: float

    def __post_init__(self) -> None:
        if not 0 <= self.seconds <= 86_400 * 366:
            raise InvalidInput(f"A snooze must be from 0 seconds to 1 year, not {self.seconds!r}.")


class Rule(NamedTuple):
    """The effect of an outcome on its job: the next state, the event, and whether the attempt
    counts against the retry policy. `name` is its name in metrics and traces."""

    state: JobState
    event: str
    counts: bool
    name: str


# Must match the table in sql/functions/40_outcomes.sql, which applies it.
RULES = {
    "completed": Rule(JobState.COMPLETED, "job_completed", True, "completed"),
    "failed": Rule(JobState.FAILED, "job_failed", True, "failed"),
    "cancelled": Rule(JobState.CANCELLED, "job_cancelled", True, "cancelled"),
    "retry": Rule(JobState.SCHEDULED, "job_retrying", True, "retried"),
    "snooze": Rule(JobState.SCHEDULED, "job_snoozed", False, "snoozed"),
    "release": Rule(JobState.READY, "job_released", False, "released"),
    "advance": Rule(JobState.READY, "job_stage", False, "advanced"),
}
# The name in metrics and traces of an attempt that lost its lease. It has no outcome.
LOST = "lost"

# The state of a job after an event.
STATE_AFTER = {
    "job_started": JobState.RUNNING,
    "job_progress": JobState.RUNNING,
    **{rule.event: rule.state for rule in RULES.values()},
}

# `failed` is the only final state that a job can leave, by a manual retry. The retry starts a new
# generation.
TRANSITIONS = {
    JobState.READY: frozenset({JobState.RUNNING, JobState.CANCELLED}),
    JobState.SCHEDULED: frozenset({JobState.RUNNING, JobState.CANCELLED}),
    JobState.RUNNING: frozenset(rule.state for rule in RULES.values()),
    JobState.COMPLETED: frozenset[JobState](),
    JobState.FAILED: frozenset({JobState.READY}),
    JobState.CANCELLED: frozenset[JobState](),
}


class Outcome(NamedTuple):
    """The recorded end of an attempt. `kind` is a key of `RULES`."""

    claim: Claim
    kind: str
    result: str | None = None
    error: dict[str, Any] | None = None
    delay: float | None = None
    task: str | None = None
    key: str | None = None
    payload: str | None = None
    progress: Progress | None = None
    usage: Mapping[str, Decimal] | None = None
    released: Collection[UUID] | None = None

    def releasing(self, files: Collection[UUID]) -> "Outcome":
        """Releases files with this outcome, if it ends a stage. Files that the result or the next
        payload names are kept."""
        if self.kind not in ("completed", "advance"):
            return self
        named = (self.result or self.payload or "").lower()
        return self._replace(released=[file for file in files if str(file) not in named])


def completed(claim: Claim, result: str) -> Outcome:
    return Outcome(claim, "completed", result)


def advanced(claim: Claim, task: str, key: str, payload: str) -> Outcome:
    return Outcome(claim, "advance", task=task, key=key, payload=payload)


def snoozed(claim: Claim, seconds: float) -> Outcome:
    return Outcome(claim, "snooze", delay=seconds)


def released(claim: Claim) -> Outcome:
    return Outcome(claim, "release")


def cancelled(claim: Claim) -> Outcome:
    return Outcome(claim, "cancelled")


def failed(claim: Claim, failure: Failure, retry: Retry, random: float) -> Outcome:
    """Retries if the failure is transient and the policy allows it. Otherwise, the job fails."""
    error = {
        "code": failure.code,
        "message": failure.message,
        "detail": failure.detail,
        "transient": failure.transient,
    }
    if not failure.transient or retry.exhausted(claim.attempt):
        return Outcome(claim, "failed", error=error)
    delay = retry.delay(claim.attempt, random, failure.retry_after)
    return Outcome(claim, "retry", error=error, delay=delay)


def lost(claim: Claim, retry: Retry, random: float) -> Outcome:
    """The worker was lost during the attempt. The attempt counts."""
    failure = Failure(
        code="worker_lost",
        transient=True,
        message="The worker that ran this job stopped unexpectedly.",
        detail="The lease expired: the worker died, or could not reach the database in time.",
    )
    return failed(claim, failure, retry, random)


def unstorable(ended: Outcome, detail: str) -> Outcome:
    """The value that the handler returned cannot be stored."""
    error = {
        "code": "unstorable",
        "message": "The result could not be stored.",
        "detail": storable(detail)[:DETAIL_LENGTH],
        "transient": False,
    }
    return Outcome(ended.claim, "failed", error=error, usage=ended.usage)
