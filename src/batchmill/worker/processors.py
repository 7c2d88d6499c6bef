"""Numbers the slots of a worker for operators: what runs in each one, and which are broken.

Numbers are given when a report is made, not when an attempt starts. So short attempts cost nothing,
and a long one keeps its number to the end.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from time import monotonic
from typing import Any

from batchmill.domain.pool import SHARED
from batchmill.worker.attempt import Attempt

# A younger attempt would often have ended before its number is written.
STEADY = 1.0
MOST = 1_000


@dataclass(frozen=True, slots=True)
class Stuck:
    """An attempt that has ended, although its handler still runs."""

    attempt: Attempt
    since: float


class Processors:
    """Sets `changed` when a slot breaks or works again."""

    def __init__(self, pools: Collection[str]):
        self._pools = pools
        self._numbers: dict[object, int] = {}
        self._stuck: dict[asyncio.Future[Any], Stuck] = {}
        self._dead_since: dict[object, float] = {}
        self.changed = asyncio.Event()

    def stuck_until(self, ended: asyncio.Future[Any], attempt: Attempt) -> None:
        """The handler of the attempt ignores its cancellation. It runs until `ended` is done."""
        self._stuck[ended] = Stuck(attempt, monotonic())
        ended.add_done_callback(self._works_again)
        self.changed.set()

    def cancel_stuck(self) -> None:
        """Cancels stuck handlers on the event loop again. Threads cannot be cancelled. The
        attempts have ended, so no job changes."""
        for running in list(self._stuck):
            if isinstance(running, asyncio.Task):
                running.cancel()

    def report(
        self, attempts: Iterable[Attempt], dead_children: Mapping[Any, str]
    ) -> list[dict[str, Any]]:
        """The broken slots and those of steady attempts, each with its number. `dead_children` are
        child processes that have ended by themselves, with the task that each has run last."""
        now = monotonic()
        self._dead_since = {child: self._dead_since.get(child, now) for child in dead_children}
        entries: dict[object, dict[str, Any]] = {
            child: {"task": task, **broken("child_ended", now - self._dead_since[child])}
            for child, task in dead_children.items()
        }
        for stuck in self._stuck.values():
            claim, seconds = stuck.attempt.claim, now - stuck.since
            entries[claim.fence] = {
                "task": claim.task,
                "job_id": claim.id,
                **broken("ignores_cancellation", seconds),
            }
        for attempt in attempts:
            if attempt.begun_at is not None and now - attempt.begun_at >= STEADY:
                claim = attempt.claim
                entries.setdefault(claim.fence, {"task": claim.task, "job_id": claim.id})
        return self._numbered(dict(list(entries.items())[:MOST]))

    def _numbered(self, entries: dict[object, dict[str, Any]]) -> list[dict[str, Any]]:
        kept = {key: number for key, number in self._numbers.items() if key in entries}
        taken = {(self._pool(entries[key]), number) for key, number in kept.items()}
        free: dict[str, Iterator[int]] = {}
        for key, entry in entries.items():
            if key not in kept:
                pool = self._pool(entry)
                kept[key] = next(free.setdefault(pool, _free_numbers(pool, taken)))
        self._numbers = kept
        return [
            {"pool": self._pool(entry), "number": kept[key], **entry}
            for key, entry in entries.items()
        ]

    def _pool(self, entry: Mapping[str, Any]) -> str:
        return entry["task"] if entry["task"] in self._pools else SHARED

    def _works_again(self, ended: asyncio.Future[Any]) -> None:
        self._stuck.pop(ended, None)
        self.changed.set()


def _free_numbers(pool: str, taken: Collection[tuple[str, int]]) -> Iterator[int]:
    return (number for number in count(1) if (pool, number) not in taken)


def broken(problem: str, seconds: float) -> dict[str, Any]:
    """The database knows the time, so a worker reports for how long the slot has been broken."""
    return {"broken": problem, "seconds": seconds}
