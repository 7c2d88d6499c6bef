"""Random sequences of all calls to the engine, with a clock that the test controls.

After each step every invariant must hold. At the end, a worker must be able to finish all jobs.
"""

import itertools
import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from batchmill.domain import outcome
from batchmill.domain.job import Claim, JobState, Progress
from batchmill.domain.limits import Limits, Rate
from batchmill.domain.notification import EMAIL, WEBHOOK
from batchmill.domain.outcome import Outcome
from batchmill.domain.retry import Retry
from batchmill.store.providers import Ask
from tests.invariants import violations
from tests.store.engine import LEASE, PERMANENT, TRANSIENT, Engine

RETRY = Retry(attempts=3, base=10, jitter=0)
FLOW = Limits(total=4, per_batch=2, per_tenant=3, per_key=2)
TASKS: dict[str, dict[str, Any]] = {
    "unlimited": {},
    "limited": {"limits": Limits(total=3)},
    "per_batch_limited": {"limits": Limits(per_batch=2)},
    "per_tenant_limited": {"limits": Limits(per_tenant=2)},
    "rate_limited": {"limits": Limits(rate=Rate(3, 10))},
    "keyed": {"limits": Limits(per_key=1, per_batch=3), "keyed": True},
    "key_rate_limited": {"limits": Limits(key_rate=Rate(2, 10)), "keyed": True},
    "flow.first": {"pipeline": FLOW},
    "flow.second": {"pipeline": FLOW, "priority": 5},
    "flow.keyed": {"pipeline": FLOW, "limits": Limits(per_key=1), "keyed": True},
    "callback": {},
    WEBHOOK: {},
    EMAIL: {},
}
NOTIFIERS = {"callback", WEBHOOK, EMAIL}
TABLES = """tasks, batches, duplicates, requests, lanes, limits, workers, jobs, finished, event_blocks, leases,
    schedules, statistics, webhooks, notifications, batch_usage, daily_usage, providers, holds"""
PROVIDERS: dict[str, dict[str, Any]] = {
    "provider:slots": {"slots": 2},
    "provider:rate": {"rate": Rate(3, 10)},
    "provider:both": {"slots": 2, "rate": Rate(3, 10)},
}

tasks = st.sampled_from(sorted(TASKS.keys() - NOTIFIERS))
tasks_without_keys = tasks.filter(lambda task: not TASKS[task].get("keyed"))
tenants = st.sampled_from(["ann", "bob"])
keys = st.sampled_from(["k1", "k2", "k3"])
delays = st.sampled_from([0, 5, 60])
targets = st.lists(
    st.sampled_from(["ann@example.org", "https://example.org/a", "https://example.org/b"]),
    min_size=1,
)
limit_names = st.one_of(
    st.sampled_from(["system", "tenant:ann", "tenant:*", "key:k1", "key:*", "batch:*"]),
    st.sampled_from(["pipeline:flow", "pipeline:flow/batch:*", "pipeline:flow/tenant:bob"]),
    st.sampled_from(sorted(PROVIDERS)),
    tasks.flatmap(
        lambda task: st.sampled_from(
            [f"task:{task}", f"task:{task}/tenant:*", f"task:{task}/tenant:bob"]
            + [f"task:{task}/batch:*"]
            + ([f"task:{task}/key:*", f"task:{task}/key:k2"] if TASKS[task].get("keyed") else [])
        )
    ),
)
changes = st.one_of(
    st.fixed_dictionaries({"slots": st.integers(0, 4)}),
    st.fixed_dictionaries(
        {"rate": st.builds(Rate, st.integers(1, 4), st.sampled_from([5.0, 20.0]))}
    ),
    st.fixed_dictionaries({"paused": st.booleans()}),
    st.just({"reset": True}),
)
amounts = st.none() | st.dictionaries(
    st.sampled_from(["eur", "tokens"]), st.decimals(0, 9, places=2), min_size=1
)
blocks = st.lists(st.integers(0, 40), min_size=1, max_size=9)


@st.composite
def items(draw: st.DrawFn, task: str) -> dict[str, Any]:
    item: dict[str, Any] = {"payload": draw(st.integers(0, 9))}
    if TASKS[task].get("keyed"):
        item["key"] = draw(keys)
    for name, values in (
        ("priority", st.integers(-2, 2)),
        ("delay", delays),
        ("dedup_key", keys),
        ("cache_key", keys),
    ):
        if draw(st.integers(0, 3)) == 0:
            item[name] = draw(values)
    return item


class EngineMachine(RuleBasedStateMachine):
    conn: psycopg.Connection[Any]

    def __init__(self) -> None:
        super().__init__()
        self.conn.execute(
            f"set search_path = batchmill; truncate {TABLES} restart identity".encode()
        )
        self.engine = Engine(self.conn)
        self.engine.set_clock(0)
        self.batches: list[UUID] = []
        self.workers: list[int] = []
        self.held: list[Claim] = []
        self.ended: list[Claim] = []
        self.cancelled: set[int] = set()
        self.newest_fence = 0
        self.starts: defaultdict[str, list[datetime]] = defaultdict(list)
        self.used: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
        self.numbers = itertools.count(1)
        self.asked: list[Ask] = []
        self.known_grants: list[int] = []
        for name, given in TASKS.items():
            self.engine.task(name, retry=RETRY, **given)
        for name, given in PROVIDERS.items():
            self.engine.set_limit(name, **given)
        self.register_worker()

    # What users do.

    @rule(data=st.data(), task=tasks, tenant=tenants, count=st.integers(1, 6))
    def submit(self, data: st.DataObject, task: str, tenant: str, count: int) -> None:
        batch = data.draw(st.lists(items(task), min_size=count, max_size=count), "items")
        options: dict[str, Any] = {"tenant": tenant}
        for name, values in (
            ("expires_in", st.just(86_400)),
            ("limit", st.integers(1, 3)),
            ("on_finish", st.just("callback")),
            ("notify", targets),
            ("idempotency_key", keys),
            ("priority", st.integers(-1, 1)),
            ("delay", delays),
        ):
            if data.draw(st.integers(0, 3), name) == 0:
                options[name] = data.draw(values, name)
        try:
            answer = self.engine.submit(task, batch, **options)
        except psycopg.Error as error:
            assert error.sqlstate == "BM004", error
        else:
            if UUID(answer["batch_id"]) not in self.batches:
                self.batches.append(UUID(answer["batch_id"]))
        self.check()

    @rule(task=tasks_without_keys, tenant=tenants, priority=st.integers(-1, 1), delay=delays)
    def submit_one(self, task: str, tenant: str, priority: int, delay: int) -> None:
        options = {"tenant": tenant, "priority": priority, "delay": delay, "expires_in": 86_400}
        self.batches.append(self.engine.submit_one(task, 1, **options))
        self.check()

    @rule(data=st.data(), task=tasks, tenant=tenants)
    def enqueue(self, data: st.DataObject, task: str, tenant: str) -> None:
        options = data.draw(items(task), "job")
        if data.draw(st.integers(0, 3), "idempotent") == 0:
            options["idempotency_key"] = data.draw(keys, "idempotency_key")
        payload = options.pop("payload")
        try:
            answer = self.engine.enqueue(task, payload, tenant=tenant, **options)
        except psycopg.Error as error:
            assert error.sqlstate == "BM004", error
        else:
            assert answer["job_id"] or answer["existing"]
        self.check()

    @rule(
        data=st.data(),
        all_of_batch=st.booleans(),
        steps=st.none() | st.lists(st.integers(1, 3), max_size=3),
    )
    def cancel(self, data: st.DataObject, all_of_batch: bool, steps: list[int] | None) -> None:
        if all_of_batch and self.batches:
            batch = data.draw(st.sampled_from(self.batches), "batch")
            jobs = self.live_jobs(batch)
            if steps is None:
                self.engine.call("cancel_batch", batch)
            else:
                self.engine.call("begin_cancel", batch)
                self.engine.cancel_in_steps(batch, *steps)
            self.cancelled.update(jobs)
        elif jobs := self.live_jobs():
            job = data.draw(st.sampled_from(jobs), "job")
            is_marked = job in self.cancelled and self.engine.state(job) is JobState.RUNNING
            assert self.engine.call("cancel_job", job) == (not is_marked)
            self.cancelled.add(job)
        self.check()

    @rule(data=st.data(), all_of_batch=st.booleans())
    def retry(self, data: st.DataObject, all_of_batch: bool) -> None:
        try:
            if all_of_batch and self.batches:
                batch = data.draw(st.sampled_from(self.batches), "batch")
                failed = self.engine.status(batch)[4]
                assert self.engine.call("retry_batch", batch) == failed
            elif jobs := self.engine.rows("select id, state from batchmill.finished order by id"):
                job, state = data.draw(st.sampled_from(jobs), "job")
                assert self.engine.call("retry_job", job) == 1
                assert state == JobState.FAILED
        except psycopg.Error as error:
            assert error.sqlstate == "BM006", error
        self.check()

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), recipients=targets)
    def notify(self, data: st.DataObject, recipients: list[str]) -> None:
        self.engine.call(
            "notify_batch", data.draw(st.sampled_from(self.batches), "batch"), recipients
        )
        self.check()

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def delete_batch(self, data: st.DataObject) -> None:
        batch = data.draw(st.sampled_from(self.batches), "batch")
        finished = self.engine.value(
            "select finished_at is not null from batchmill.batches where id = %s", batch
        )
        try:
            self.engine.call("delete_batch", batch)
            assert finished
            self.batches.remove(batch)
        except psycopg.Error as error:
            assert error.sqlstate == "BM006" and not finished, error
        self.check()

    # What workers do.

    @precondition(lambda self: len(self.workers) < 3)
    @rule()
    def register_worker(self) -> None:
        self.workers.append(self.engine.worker(*TASKS))

    @precondition(lambda self: self.workers)
    @rule(
        data=st.data(),
        wanted=st.dictionaries(tasks, st.integers(1, 5), min_size=1),
        want=st.integers(1, 8),
        prefetch=st.integers(0, 4),
    )
    def claim(self, data: st.DataObject, wanted: dict[str, int], want: int, prefetch: int) -> None:
        worker = data.draw(st.sampled_from(self.workers), "worker")
        claims = self.start(worker, wanted, want, prefetch)
        assert len(claims) <= want + prefetch
        for task, most in wanted.items():
            assert sum(c.task == task for c in claims) <= most
        self.check()

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), times=st.integers(1, 3))
    def claim_much(self, data: st.DataObject, times: int) -> None:
        worker = data.draw(st.sampled_from(self.workers), "worker")
        for _ in range(times):
            self.start(worker, dict.fromkeys(TASKS, 20), 20, 0)
            self.check()

    @precondition(lambda self: self.held)
    @rule(data=st.data(), chosen=blocks)
    def finish(self, data: st.DataObject, chosen: list[int]) -> None:
        """A block of outcomes, of which some may be duplicates and some too late."""
        block = self.any_block(data, chosen)
        self.count_usage(block)
        self.check_refused(block, self.engine.finish(*block))
        self.end(o.claim for o in block)
        self.check()

    @precondition(lambda self: self.held and self.workers)
    @rule(data=st.data(), chosen=blocks, want=st.integers(1, 8), prefetch=st.integers(0, 4))
    def finish_and_claim(
        self, data: st.DataObject, chosen: list[int], want: int, prefetch: int
    ) -> None:
        """The same, and a claim in the same transaction."""
        worker = data.draw(st.sampled_from(self.workers), "worker")
        block = self.any_block(data, chosen)
        self.start(worker, dict.fromkeys(TASKS, 5), want, prefetch, block)
        self.check()

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def work(self, data: st.DataObject) -> None:
        """Claims jobs and ends all of them."""
        worker = data.draw(st.sampled_from(self.workers), "worker")
        claims = self.start(worker, dict.fromkeys(TASKS, 20), 20, 0)
        self.check()
        ended = [self.any_outcome(data, claim) for claim in claims]
        self.count_usage(ended)
        assert self.engine.finish(*ended) == []
        self.end(claims)
        self.check()

    @precondition(lambda self: self.held)
    @rule(chosen=blocks)
    def report(self, chosen: list[int]) -> None:
        claims = self.held + self.ended
        reporting = {c.fence: c for c in (claims[n % len(claims)] for n in chosen)}.values()
        refused = self.engine.report(
            *reporting, progress={"stage": "s", "message": "", "percent": 1}
        )
        current = {c.id for c in reporting if c in self.held}
        assert set(refused) == {c.id for c in reporting} - current
        self.check()

    @precondition(lambda self: self.held)
    @rule(n=st.integers(0, 40))
    def save_checkpoint(self, n: int) -> None:
        claims = self.held + self.ended
        claim = claims[n % len(claims)]
        query = "select batchmill.save_checkpoint(%s, %s, 'step', '1'::json)"
        assert self.engine.value(query, claim.id, claim.fence) == (claim in self.held)
        self.check()

    @precondition(lambda self: self.held and self.workers)
    @rule(chosen=blocks, name=st.sampled_from(sorted(PROVIDERS)))
    def enter_limit(self, chosen: list[int], name: str) -> None:
        """Attempts ask for slots of a provider. Some of them have ended."""
        claims = self.held + self.ended
        for worker, asking in self.by_worker(claims[n % len(claims)] for n in chosen).items():
            self.hold(worker, *(Ask(next(self.numbers), name, claim) for claim in asking))

    @precondition(lambda self: self.asked and self.workers)
    @rule(chosen=blocks)
    def leave_limit(self, chosen: list[int]) -> None:
        """Attempts free slots, or give up waiting for them. Some have done so before."""
        for ask in (self.asked[n % len(self.asked)] for n in chosen):
            ((worker, _),) = self.by_worker([ask.claim]).items()
            self.hold(worker, freed=[ask.number])

    # What operators do.

    @rule(name=limit_names, change=changes)
    def set_limit(self, name: str, change: dict[str, Any]) -> None:
        self.starts.clear()
        self.engine.set_limit(name, **change)
        self.check_grants()
        self.check()

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), change=changes)
    def set_limit_of_batch(self, data: st.DataObject, change: dict[str, Any]) -> None:
        batch = data.draw(st.sampled_from(self.batches), "batch")
        if self.live_jobs(batch):
            self.engine.set_limit(f"batch:{batch}", **change)
            self.check()

    @rule(task=tasks, slots=st.one_of(st.none(), st.integers(1, 4)))
    def deploy(self, task: str, slots: int | None) -> None:
        """A new version of the code declares other limits."""
        self.starts.clear()
        given = dict(TASKS[task])
        limits = replace(given.pop("limits", Limits()), total=slots, per_tenant=slots)
        self.engine.task(task, retry=RETRY, limits=limits, **given)
        self.check()

    @rule(task=tasks, priority=st.one_of(st.none(), st.integers(-1, 1)))
    def set_priority(self, task: str, priority: int | None) -> None:
        assert self.engine.call("set_priority", task, priority) is not None
        self.check()

    # Time and the upkeep.

    @rule(seconds=st.sampled_from([1, 6, 11, 61]))
    def wait(self, seconds: int) -> None:
        self.engine.advance_clock(seconds)
        for worker in self.workers:
            assert set(self.engine.call("renew_lease", worker, LEASE)) <= self.cancelled

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def lose_worker(self, data: st.DataObject) -> None:
        """All leases but one expire; only the jobs of the other workers are rescued."""
        survivor = data.draw(st.sampled_from(self.workers), "survivor")
        self.engine.advance_clock(LEASE + 1)
        self.engine.call("renew_lease", survivor, LEASE)
        lost = self.jobs_held_by(set(self.workers) - {survivor})
        rescued = self.engine.look_after(survivor)
        assert set(rescued) == lost
        self.workers = [survivor]
        self.end([c for c in self.held if c.id in lost])
        self.check()

    @rule(late=st.sampled_from([0, 0, 0, 3 * 86_400]))
    def tidy(self, late: int) -> None:
        """Expired batches are removed if they are finished, and cancelled otherwise."""
        self.wait(late)
        self.engine.tidy()
        for parent in ("finished", "event_blocks"):
            query = "select batchmill.make_partition(%s, batchmill.day_of(batchmill.clock()) + 1)"
            self.engine.value(query, parent)
        for batch in self.batches:
            if self.engine.value(EXPIRED, batch):
                self.cancelled.update(self.live_jobs(batch))
        self.engine.expire()
        left = self.engine.rows("select id from batchmill.batches")
        self.batches = [batch for batch in self.batches if (batch,) in left]
        self.check()

    def teardown(self) -> None:
        """When no limit is paused, all waiting jobs finish, whatever happened before."""
        self.engine.conn.execute(
            """select batchmill.set_limit(name, greatest(slots, 1), null, null, false)
            from batchmill.limits where slots is not null"""
        )
        self.engine.finish(*(outcome.completed(c, "1") for c in self.held))
        self.end(self.held)
        worker = self.engine.worker(*TASKS)
        for _ in range(200):
            self.engine.advance_clock(7)
            self.engine.call("renew_lease", worker, LEASE)
            claims = self.start(worker, dict.fromkeys(TASKS, 20), 20, 0)
            assert self.engine.complete(*claims) == []
            self.end(claims)
            if not self.live_jobs():
                break
            self.engine.tidy()
        assert self.live_jobs() == []
        self.engine.tidy()
        assert self.engine.rows("select number from batchmill.holds") == []
        self.check()

    # Checks and helpers.

    def check(self) -> None:
        # Limits may have been lowered. `start` checks them for each claim.
        assert violations(self.conn, lowered=True) == []
        used = {(task, name): amount for task, name, amount in self.engine.rows(USED)}
        assert used == self.used

    def start(
        self,
        worker: int,
        wanted: dict[str, int],
        want: int,
        prefetch: int,
        ended: Sequence[Outcome] = (),
    ) -> list[Claim]:
        before = self.running()
        self.count_usage(ended)
        if ended:
            refused, claims = self.engine.finish_and_claim(
                worker, ended=ended, want=want, prefetch=prefetch, **wanted
            )
            self.check_refused(ended, refused)
            self.end(o.claim for o in ended)
        else:
            claims = self.engine.claim(worker, want=want, prefetch=prefetch, **wanted)
        slots = dict(self.engine.rows(SLOTS))
        for name, running in self.running().items():
            # Jobs that ran when a limit was lowered may continue.
            assert running <= before.get(name, 0) or running <= slots.get(name, running), name
        self.check_starts(claims)
        for claim in claims:
            assert claim.fence > self.newest_fence
            assert claim.id not in self.cancelled
        self.newest_fence = max([self.newest_fence, *(c.fence for c in claims)])
        self.held += claims
        return claims

    def running(self) -> dict[str, int]:
        """The number of running jobs under each possible limit name, counted from the jobs."""
        return dict(self.engine.rows(RUNNING))

    def check_starts(self, claims: list[Claim]) -> None:
        """No window has more starts than the rate allows, and no job starts before its run_at."""
        started = self.engine.rows(
            """select m.name, m.rate, m.period, j.started_at, j.run_at from batchmill.jobs j
            cross join lateral batchmill.limit_names(j.task, j.tenant, j.batch_id, j.key) n
            left join batchmill.limits m on m.name = n.name and m.rate is not null
            where j.id = any (%s) order by j.started_at""",
            [claim.id for claim in claims],
        )
        for name, rate, period, started_at, run_at in started:
            assert started_at >= run_at
            if name is not None:
                self.check_window(name, rate, period, started_at)

    def hold(self, worker: int, *asks: Ask, freed: Sequence[int] = ()) -> None:
        before = dict(self.engine.rows(HOLDERS))
        refused = self.engine.hold(worker, *asks, freed=freed).refused
        assert set(refused) == {a.number for a in asks if a.claim not in self.held}
        self.asked += [ask for ask in asks if ask.number not in refused]
        slots = dict(self.engine.rows("select name, slots from batchmill.providers"))
        for name, holders in self.engine.rows(HOLDERS):
            # Attempts that held a slot when the limit was lowered may continue.
            allowed = max(before.get(name, 0), holders if slots[name] is None else slots[name])
            assert holders <= allowed, name
        self.check_grants()
        self.check()

    def check_grants(self) -> None:
        """No window has more grants than the rate allows."""
        for ticket, name, rate, period, granted_at in self.engine.rows(GRANTS, self.known_grants):
            self.known_grants.append(ticket)
            self.check_window(name, rate, period, granted_at)

    def check_window(self, name: str, rate: int | None, period: float, at: datetime) -> None:
        starts = self.starts[name]
        starts.append(at)
        if rate is not None:
            window = at - timedelta(seconds=period)
            assert len(starts) - bisect_right(starts, window) <= rate, name

    def by_worker(self, claims: Iterable[Claim]) -> dict[int, list[Claim]]:
        """Groups claims by the worker that runs them. Ended claims go to the first worker."""
        running = dict(self.engine.rows("select fence, worker_id from batchmill.jobs"))
        found: defaultdict[int, list[Claim]] = defaultdict(list)
        for claim in claims:
            found[running.get(claim.fence, self.workers[0])].append(claim)
        return found

    def any_block(self, data: st.DataObject, chosen: list[int]) -> list[Outcome]:
        claims = self.held + self.ended
        return [self.any_outcome(data, claims[n % len(claims)]) for n in chosen]

    def check_refused(self, block: Sequence[Outcome], refused: list[int]) -> None:
        late = {o.claim.id for o in block if o.claim in self.ended}
        current = {o.claim.id for o in block if o.claim in self.held}
        assert set(refused) == late - current

    def any_outcome(self, data: st.DataObject, claim: Claim) -> Outcome:
        kind = data.draw(st.sampled_from(OUTCOMES), "kind")
        if claim.task in NOTIFIERS:
            # The invariants identify these jobs by their payload, which another stage would change.
            kind = "completed"
        match kind:
            case "completed":
                ended = outcome.completed(claim, "7")
            case "failed":
                ended = outcome.failed(claim, PERMANENT, RETRY, 0.5)
            case "busy":
                ended = outcome.failed(claim, TRANSIENT, RETRY, 0.5)
            case "advance":
                task = data.draw(tasks, "stage")
                key = data.draw(keys, "key") if TASKS[task].get("keyed") else ""
                ended = outcome.advanced(claim, task, key, "3")
            case "snooze":
                ended = outcome.snoozed(claim, data.draw(delays, "delay"))
            case "release":
                ended = outcome.released(claim)
            case _:
                ended = outcome.cancelled(claim)
        progress = data.draw(st.sampled_from([None, Progress("stage")]), "progress")
        return ended._replace(progress=progress, usage=data.draw(amounts, "usage"))

    def count_usage(self, block: Sequence[Outcome]) -> None:
        """Counts what current attempts used. `block` is not recorded yet."""
        for ended in block:
            if ended.claim in self.held:
                for name, amount in (ended.usage or {}).items():
                    self.used[ended.claim.task, name] += amount

    def end(self, claims: Iterable[Claim]) -> None:
        gone = {claim.fence for claim in claims}
        self.ended += [c for c in self.held if c.fence in gone]
        self.held = [c for c in self.held if c.fence not in gone]

    def live_jobs(self, batch: UUID | None = None) -> list[int]:
        query = """select id from batchmill.jobs
            where %s::uuid is null or batch_id = %s order by id"""
        return [job for (job,) in self.engine.rows(query, batch, batch)]

    def jobs_held_by(self, workers: set[int]) -> set[int]:
        query = "select id from batchmill.jobs where state = 'running' and worker_id = any (%s)"
        return {job for (job,) in self.engine.rows(query, list(workers))}


SLOTS = """
    select name, slots from batchmill.limits where slots is not null
    union all
    select 'task:' || l.task || '/batch:' || l.batch_id, m.slots
    from batchmill.lanes l join batchmill.limits m on m.name = 'task:' || l.task || '/batch:*'
    where l.batch_id is not null and l.key = '' and m.slots is not null"""
RUNNING = """
    select n.name, count(*) from batchmill.jobs j cross join lateral (
        select name from batchmill.limit_names(j.task, j.tenant, j.batch_id, j.key)
        union select 'task:' || j.task || '/batch:' || j.batch_id) n
    where j.state = 'running' and n.name is not null group by n.name"""
USED = """select task, name, sum(amount) from batchmill.daily_usage group by task, name"""
HOLDERS = """
    select p.name, count(*) from batchmill.holds h
    join batchmill.providers p on p.id = h.provider_id
    join batchmill.jobs j on j.id = h.job_id and j.fence = h.fence
    where h.granted_at is not null group by p.name"""
GRANTS = """
    select h.ticket, p.name, p.rate, p.period, h.granted_at from batchmill.holds h
    join batchmill.providers p on p.id = h.provider_id
    where h.granted_at is not null and h.ticket <> all (%s::bigint[]) order by h.granted_at"""
EXPIRED = "select expires_at < batchmill.clock() from batchmill.batches where id = %s"
EXAMPLES = int(os.environ.get("BATCHMILL_EXAMPLES", "60"))
OUTCOMES = ["completed", "failed", "busy", "advance", "snooze", "release", "cancelled"]


@pytest.mark.timeout(900)
def test_invariants_hold_for_any_sequence_of_calls(sql: psycopg.Connection[Any]) -> None:
    class Machine(EngineMachine):
        conn = sql

    # Steps create partitions as needed. Many partitions at the start would slow down every step.
    sql.execute("select batchmill.drop_expired_partitions('infinity')")
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=50,
            print_blob=True,
            report_multiple_bugs=False,
        ),
    )
