"""Calls the engine's SQL functions directly, as a client in any language would."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast
from uuid import UUID

import psycopg
from psycopg import sql
from pydantic_core import to_json

from batchmill.domain import outcome
from batchmill.domain.demand import Demand
from batchmill.domain.failure import Failure
from batchmill.domain.job import Claim, JobState
from batchmill.domain.limits import Limits, Rate
from batchmill.domain.outcome import Outcome
from batchmill.domain.retry import Retry
from batchmill.store.delivery import Turns, claim_call, claims, finish_call, with_records
from batchmill.store.providers import Ask, Holds, hold_call
from batchmill.store.queries import queries

LEASE = 30.0
PERMANENT = Failure("broken", transient=False, message="It broke.", detail="")
TRANSIENT = Failure("busy", transient=True, message="Come back later.", detail="")


class Engine:
    """One session. Its clock moves only when the test moves it."""

    def __init__(self, conn: psycopg.Connection[Any]):
        self.conn = conn
        self.offset = 0.0
        self.since = "0"
        self.turns = Turns()

    def call(self, function: str, *args: Any) -> Any:
        return self.value(f"select batchmill.{function}({', '.join(['%s'] * len(args))})", *args)

    def value(self, query: str, *args: Any) -> Any:
        row = self.conn.execute(query.encode(), args).fetchone()
        return row[0] if row else None

    def rows(self, query: str, *args: Any) -> list[tuple[Any, ...]]:
        return self.conn.execute(query.encode(), args).fetchall()

    def advance_clock(self, seconds: float) -> None:
        self.set_clock(self.offset + seconds)

    def set_clock(self, offset: float) -> None:
        self.offset = offset
        setting = sql.Literal(f"{offset} seconds")
        self.conn.execute(sql.SQL("set batchmill.clock_offset = {}").format(setting))

    def task(
        self,
        name: str,
        *,
        limits: Limits | None = None,
        retry: Retry | None = None,
        keyed: bool = False,
        payload_limit: int = 1_048_576,
        priority: int = 0,
        pipeline: Limits | None = None,
    ) -> str:
        retrying = json(retry or Retry(attempts=3, base=10, jitter=0))
        declared = json((limits or Limits()).to_json())
        shared = json(pipeline.to_json()) if pipeline else None
        query = (
            "select batchmill.register_task(%s, %s::jsonb, %s, %s, %s::jsonb, false, %s, %s::jsonb)"
        )
        self.value(query, name, retrying, keyed, payload_limit, declared, priority, shared)
        return name

    def worker(self, *tasks: str, name: str = "test", lease: float = LEASE) -> int:
        return self.call("register_worker", name, "0", list(tasks), 10, lease)

    def submit(self, task: str, items: Iterable[Any], **options: Any) -> dict[str, Any]:
        query = "select batchmill.submit(%s, %s::json, %s::jsonb)"
        return self.value(query, task, json([item(i) for i in items]), json(options))

    def submit_one(self, task: str, payload: Any, **options: Any) -> UUID:
        query = "select batchmill.submit_one(%s, %s::json, %s::jsonb)"
        return UUID(self.value(query, task, json(payload), json(options))["batch_id"])

    def batch(self, task: str, items: int | Iterable[Any], **options: Any) -> UUID:
        items = range(items) if isinstance(items, int) else items
        return UUID(self.submit(task, items, **options)["batch_id"])

    def enqueue(self, task: str, payload: Any = None, **options: Any) -> dict[str, Any]:
        query = "select batchmill.enqueue(%s, %s::json, %s::jsonb)"
        return self.value(query, task, json(payload), json(options))

    def claim(
        self, worker: int, *tasks: str, want: int = 100, prefetch: int = 0, **wants: int
    ) -> list[Claim]:
        return self._claimed(
            "claim_jobs", worker, dict.fromkeys(tasks, want) | wants, want, prefetch
        )[1]

    def finish_and_claim(
        self,
        worker: int,
        *tasks: str,
        ended: Iterable[Outcome],
        want: int = 100,
        prefetch: int = 0,
        **wants: int,
    ) -> tuple[list[int], list[Claim]]:
        """Returns the jobs whose outcome was refused, and the claims of the same transaction."""
        wants = dict.fromkeys(tasks, want) | wants
        call = finish_call(list(ended))
        query = with_records("finish_and_claim", call)
        return self._claimed(query, worker, wants, want, prefetch, **call)

    def _claimed(
        self,
        query: str,
        worker: int,
        wants: Mapping[str, int],
        want: int,
        prefetch: int,
        **call: Any,
    ) -> tuple[list[int], list[Claim]]:
        demand = Demand(worker, wants, want, prefetch)
        call |= claim_call(demand, self.since, self.turns)
        row = self.conn.execute(queries()[query].encode(), call).fetchone()
        assert row is not None
        self.since = row[0]["since"]
        self.turns.learn(demand, row[0])
        return sorted(row[0]["refused"]), claims(row[0])

    def finish(self, *outcomes: Outcome) -> list[int]:
        """Returns the jobs whose outcome was refused."""
        call = finish_call(outcomes)
        row = self.conn.execute(queries()[with_records("finish", call)].encode(), call).fetchone()
        assert row is not None
        return sorted(row[0])

    def complete(self, *claims: Claim, result: Any = None) -> list[int]:
        return self.finish(*(outcome.completed(c, json(result)) for c in claims))

    def fail(self, *claims: Claim, failure: Failure = PERMANENT) -> list[int]:
        retry = Retry(attempts=3, base=10, jitter=0)
        return self.finish(*(outcome.failed(c, failure, retry, 0.5) for c in claims))

    def release(self, *claims: Claim) -> list[int]:
        return self.finish(*map(outcome.released, claims))

    def report(self, *claims: Claim, progress: Mapping[str, Any]) -> list[int]:
        reports = [{"id": c.id, "fence": c.fence, "progress": progress} for c in claims]
        return self.value("select batchmill.report_progress(%s::json)", json(reports))

    def set_limit(
        self,
        name: str,
        slots: int | None = None,
        *,
        rate: Rate | None = None,
        paused: bool | None = None,
        reset: bool = False,
    ) -> None:
        starts, period = (rate.starts, rate.period) if rate else (None, None)
        self.call("set_limit", name, slots, starts, period, paused, reset)

    def hold(self, worker: int, *asked: Ask, freed: Collection[int] = ()) -> Holds:
        """Frees slots of providers and asks for others, for all attempts of a worker."""
        call = hold_call(worker, freed, asked)
        row = self.conn.execute(queries()["hold_slots"].encode(), call).fetchone()
        assert row is not None
        return Holds(**row[0])

    def look_after(self, worker: int) -> list[int]:
        """Ends the attempts of lost workers, as the upkeep does; returns their jobs."""
        answer = self.call("look_after", worker, LEASE)
        if not answer or not answer["lapsed"]:
            return []
        ended = [
            outcome.lost(Claim(**job["claim"]), policy(job["retry"]), 0.5)
            for job in answer["lapsed"]
        ]
        refused = self.finish(*ended)
        return [end.claim.id for end in ended if end.claim.id not in refused]

    def tidy(self) -> None:
        for name in ("add_statistics", "tidy", "tidy_limits"):
            self.rows(queries()[name])
        for (batch,) in self.rows(queries()["half_cancelled"]):
            self.cancel_in_steps(batch, 100)

    def cancel_in_steps(self, batch: UUID, *sizes: int) -> list[int]:
        """Ends waiting jobs of a cancelled batch, in a step for each size; returns how many jobs
        each step ended."""
        step = "select * from batchmill.cancel_step(%s, %s, %s)"
        after, ended = -1, []
        for most in sizes:
            ((cancelled, upto),) = self.rows(step, batch, after, most)
            after = -1 if upto is None else upto
            ended.append(cancelled)
        return ended

    def expire(self) -> dict[str, int]:
        """Removes expired data, as the upkeep does; returns how much of each kind."""
        for (batch,) in self.rows(queries()["late_batches"]):
            self.call("cancel_batch", batch)
        return self.value(queries()["expire"])

    def state(self, job: int) -> JobState:
        query = """select state from batchmill.jobs where id = %s
            union all select state from batchmill.finished where id = %s"""
        (state,) = (row[0] for row in self.rows(query, job, job))
        return JobState(state)

    def status(self, batch: UUID) -> tuple[Any, ...]:
        """The state of a batch, then its job counts: total, running, completed, failed, cancelled."""
        query = """select state, total, running, completed, failed, cancelled
            from batchmill.batches where id = %s"""
        return self.rows(query, batch)[0]

    def events(self, batch: UUID) -> list[str]:
        query = "select type from batchmill.events where batch_id = %s order by number"
        return [row[0] for row in self.rows(query, batch)]

    def drain(self, worker: int, *tasks: str) -> int:
        """Claims and completes jobs until none is due; returns how many."""
        drained = 0
        while claims := self.claim(worker, *tasks):
            assert self.complete(*claims) == []
            drained += len(claims)
        return drained


def item(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) and "payload" in given else {"payload": given}


def policy(data: Any) -> Retry:
    return Retry.from_json(cast(Mapping[str, Any], data or {}))


def json(value: Any) -> str:
    return to_json(value).decode()
