"""Many concurrent sessions: no deadlock, no lost job, and no limit exceeded at any moment."""

import itertools
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest

from batchmill.domain import outcome
from batchmill.domain.job import Claim
from batchmill.domain.limits import Limits
from batchmill.domain.outcome import Outcome
from batchmill.domain.retry import Retry
from batchmill.store.providers import Ask
from tests.invariants import violations
from tests.store.engine import PERMANENT, TRANSIENT, Engine
from tests.store.ledger import Entry, exceeded, excesses, open_ledger
from tests.store.rivals import Rival

TASKS = ("wide", "narrow", "keyed", "flow.wide", "flow.keyed")
FLOW = Limits(total=6, per_batch=2)
PROVIDERS = ("provider:a", "provider:b")
SOON = Retry(attempts=3, base=0, jitter=0)


@dataclass
class Load:
    """The state that all actors share."""

    dsn: str
    seed: int
    batches: list[UUID] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)
    cancelled: set[int] = field(default_factory=set)
    completed: Counter[int] = field(default_factory=Counter)
    deadlocks: Counter[str] = field(default_factory=Counter)
    used: defaultdict[tuple[str, str], Decimal] = field(
        default_factory=lambda: defaultdict(Decimal)
    )
    counting: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)

    def count(self, ended: list[Outcome]) -> None:
        with self.counting:
            for each in ended:
                for name, amount in (each.usage or {}).items():
                    self.used[each.claim.task, name] += amount

    def actor(self, act: Callable[["Actor"], None], number: int) -> Rival[None]:
        return Rival(lambda: self._run(act, number))

    def _run(self, act: Callable[["Actor"], None], number: int) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute("set deadlock_timeout = '50ms'")
            act(Actor(self, Engine(conn), random.Random(f"{self.seed} {act.__name__} {number}")))


@dataclass
class Actor:
    load: Load
    engine: Engine
    random: random.Random
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def attempt(self, call: Callable[[], object]) -> None:
        """A refused call is fine, because other actors may have been faster. Deadlocks are counted."""
        try:
            call()
        except psycopg.errors.DeadlockDetected as error:
            self.load.deadlocks[str(error.diag.context).splitlines()[-1]] += 1
        except psycopg.Error as error:
            assert str(error.sqlstate).startswith("BM"), error


def work(actor: Actor) -> None:
    engine, load = actor.engine, actor.load
    worker = engine.worker(*TASKS, lease=600)
    while not load.over.is_set():
        actor.attempt(lambda: run_some(actor, worker))
    for claim in held_by(engine, worker):
        engine.release(claim)


def run_some(actor: Actor, worker: int) -> None:
    want = actor.random.randint(1, 12)
    cancelled = set(actor.load.cancelled)
    claims = actor.engine.claim(worker, *TASKS, want=want, prefetch=actor.random.choice([0, 5]))
    assert not cancelled & {claim.id for claim in claims}
    if actor.random.random() < 0.3:
        actor.engine.report(*claims, progress={"stage": "half"})
    enter_limits(actor, worker, claims)
    actor.random.shuffle(claims)
    while claims:
        cut = actor.random.randint(1, len(claims))
        block, claims = claims[:cut], claims[cut:]
        ended = [with_usage(actor, any_outcome(actor, claim)) for claim in block]
        assert actor.engine.finish(*ended) == []
        actor.load.count(ended)


def enter_limits(actor: Actor, worker: int, claims: list[Claim]) -> None:
    """Attempts ask for slots, and some of them free theirs. The end of an attempt frees the rest."""
    name = actor.random.choice(PROVIDERS)
    asked = [Ask(next(actor.numbers), name, claim) for claim in claims]
    actor.engine.hold(worker, *asked)
    actor.engine.hold(worker, freed=[ask.number for ask in asked if actor.random.random() < 0.5])


def die(actor: Actor) -> None:
    """Workers that start jobs and get slots of a provider, and are killed then."""
    while not actor.load.over.is_set():
        actor.attempt(lambda: start_and_die(actor))
        actor.load.over.wait(0.05)


def start_and_die(actor: Actor) -> None:
    worker = actor.engine.worker(*TASKS, lease=0.2)
    claims = actor.engine.claim(worker, *TASKS, want=3)
    actor.engine.hold(worker, *(Ask(n, PROVIDERS[n % 2], c) for n, c in enumerate(claims)))


def any_outcome(actor: Actor, claim: Claim) -> Outcome:
    match actor.random.choices(
        ["completed", "failed", "busy", "advance", "snooze", "release"], [12, 1, 2, 3, 1, 1]
    )[0]:
        case "completed":
            actor.load.completed[claim.fence] += 1
            return outcome.completed(claim, "1")
        case "failed":
            return outcome.failed(claim, PERMANENT, SOON, 0.5)
        case "busy":
            return outcome.failed(claim, TRANSIENT, SOON, 0.5)
        case "advance":
            task = actor.random.choice(TASKS)
            key = actor.random.choice("abc") if "keyed" in task else ""
            return outcome.advanced(claim, task, key, "2")
        case "snooze":
            return outcome.snoozed(claim, 0)
        case _:
            return outcome.released(claim)


def with_usage(actor: Actor, ended: Outcome) -> Outcome:
    names = actor.random.sample(["eur", "pages", "tokens"], k=actor.random.randint(0, 3))
    return ended._replace(
        usage={name: Decimal(actor.random.randint(1, 99)) / 100 for name in names}
    )


def submit(actor: Actor) -> None:
    engine, load = actor.engine, actor.load
    for _ in range(12):
        task = actor.random.choice(TASKS)
        keys = actor.random.choices("abc", k=actor.random.randint(1, 40))
        items = [{"payload": 1} | ({"key": key} if "keyed" in task else {}) for key in keys]
        tenant = actor.random.choice(["ann", "bob"])
        options = {"limit": 3} if actor.random.random() < 0.3 else {}
        load.batches.append(engine.batch(task, items, tenant=tenant, **options))
        for _ in range(5):
            single = actor.random.choice(["wide", "flow.wide"])
            load.jobs.append(engine.enqueue(single, tenant=tenant)["job_id"])


def cancel(actor: Actor) -> None:
    while not actor.load.over.is_set():
        if actor.load.batches and actor.random.random() < 0.1:
            batch = actor.random.choice(actor.load.batches)
            actor.attempt(lambda: actor.engine.call("cancel_batch", batch))  # noqa: B023
        if actor.load.jobs:
            job = actor.random.choice(actor.load.jobs)
            actor.attempt(lambda: cancel_job(actor, job))  # noqa: B023
        actor.load.over.wait(0.01)


def cancel_job(actor: Actor, job: int) -> None:
    if actor.engine.call("cancel_job", job):
        actor.load.cancelled.add(job)


def retry(actor: Actor) -> None:
    while not actor.load.over.is_set():
        if actor.load.batches:
            batch = actor.random.choice(actor.load.batches)
            actor.attempt(lambda: actor.engine.call("retry_batch", batch))  # noqa: B023
        actor.load.over.wait(0.005)


def change_limits(actor: Actor) -> None:
    names = ["system", "task:wide", "tenant:*", "task:keyed/batch:*", "task:narrow/batch:*"]
    names += ["pipeline:flow", "pipeline:flow/batch:*", "pipeline:flow/tenant:*"]
    names += PROVIDERS
    while not actor.load.over.is_set():
        name, slots = actor.random.choice(names), actor.random.randint(2, 9)
        actor.attempt(lambda: actor.engine.set_limit(name, slots))  # noqa: B023
        task, priority = actor.random.choice(TASKS), actor.random.randint(-1, 1)
        actor.attempt(lambda: actor.engine.call("set_priority", task, priority))  # noqa: B023
        actor.load.over.wait(0.005)


def keep_up(actor: Actor) -> None:
    leader = actor.engine.worker(*TASKS, lease=600)
    while not actor.load.over.is_set():
        actor.attempt(lambda: actor.engine.look_after(leader))
        actor.attempt(actor.engine.tidy)
        actor.attempt(actor.engine.expire)
        actor.load.over.wait(0.02)


def held_by(engine: Engine, worker: int) -> list[Claim]:
    query = "select id, fence, lane_id from batchmill.jobs where worker_id = %s"
    return [Claim(*row) for row in engine.rows(query, worker)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(2))
def test_concurrent_calls_of_all_kinds_keep_every_invariant(seed: int, dsn: str, engine: Engine):
    engine.task("wide", retry=SOON)
    engine.task("narrow", retry=SOON, limits=Limits(total=7, per_batch=3))
    engine.task("keyed", retry=SOON, keyed=True, limits=Limits(per_key=2, per_batch=3))
    engine.task("flow.wide", retry=SOON, pipeline=FLOW)
    engine.task("flow.keyed", retry=SOON, pipeline=FLOW, keyed=True, priority=1)
    engine.set_limit("system", 9)
    for name in PROVIDERS:
        engine.set_limit(name, 3)
    open_ledger(engine.conn)
    load = Load(dsn, seed)

    submitting = [load.actor(submit, n) for n in range(3)]
    others = [load.actor(work, n) for n in range(5)]
    others += [load.actor(act, 0) for act in (cancel, retry, change_limits, keep_up, die)]
    for rival in submitting:
        rival.result(60)
    while engine.value("select count(*) from batchmill.jobs") > 50:
        load.over.wait(0.1)
    load.over.set()
    for rival in others:
        rival.result(60)

    assert load.deadlocks == {}
    assert exceeded(engine.conn) == []
    assert max(load.completed.values()) == 1
    totals = "select task, name, sum(amount) from batchmill.daily_usage group by task, name"
    assert {(task, name): amount for task, name, amount in engine.rows(totals)} == load.used
    engine.tidy()
    assert violations(engine.conn, lowered=True) == []
    rescue(engine)
    assert drain(engine) == 0
    assert engine.rows("select number from batchmill.holds where granted_at is not null") == []
    finished = {job for (job,) in engine.rows("select id from batchmill.finished")}
    assert set(load.jobs) <= finished


def rescue(engine: Engine) -> None:
    """Ends the attempts of all workers that were killed."""
    engine.set_clock(700)
    leader = engine.worker(*TASKS)
    while engine.look_after(leader):
        pass
    engine.tidy()


def drain(engine: Engine) -> int:
    """Runs all waiting jobs; returns how many jobs are left."""
    worker = engine.worker(*TASKS)
    engine.drain(worker, *TASKS)
    return engine.value("select count(*) from batchmill.jobs")


@pytest.mark.parametrize(
    ("snapshot_of_third", "expected"),
    [("5:9:", []), ("5:9:7", ["l: [2, 3] at once, limit 1"])],
)
def test_the_ledger_detects_a_start_before_the_previous_end_is_committed(
    snapshot_of_third: str, expected: list[str]
):
    entries = [
        Entry(1, "l", 1, 5, "5:5:"),
        Entry(1, None, 0, 6, ""),
        Entry(2, "l", 1, 6, "6:6:"),
        Entry(2, None, 0, 7, ""),
        Entry(3, "l", 1, 8, snapshot_of_third),
    ]
    assert excesses(entries) == expected


def test_the_ledger_does_not_rely_on_the_counters(engine: Engine):
    engine.task("wide", limits=Limits(total=1))
    worker = engine.worker("wide")
    open_ledger(engine.conn)
    engine.batch("wide", 3)
    engine.complete(*engine.claim(worker, "wide"))
    claims = engine.claim(worker, "wide")
    assert exceeded(engine.conn) == []
    engine.rows("update batchmill.limits set running = 0 returning id")
    claims += engine.claim(worker, "wide")
    assert exceeded(engine.conn) == ["task:wide: [2, 3] at once, limit 1"]
    engine.rows("update batchmill.limits set running = 2 returning id")
    engine.complete(*claims)
