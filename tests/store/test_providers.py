"""Limits inside handlers: at most `slots` running attempts hold a provider, first come first served."""

import random
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest

from batchmill.domain.job import Claim
from batchmill.domain.limits import Rate
from batchmill.store.providers import Ask
from batchmill.store.queries import queries
from tests.store.engine import LEASE, Engine
from tests.store.rivals import Rival

Sessions = Callable[[], Engine]
API = "provider:api"


class World:
    """Workers with running jobs. Attempts are numbered by the order in which they are made."""

    def __init__(self, engine: Engine, slots: int | None = None, rate: Rate | None = None):
        engine.task("work")
        engine.set_limit(API, slots, rate=rate)
        self.engine = engine
        self.claims: list[Claim] = []

    def worker(self, jobs: int) -> int:
        worker = self.engine.worker("work")
        self.engine.batch("work", jobs)
        self.claims += self.engine.claim(worker, "work", want=jobs + 1)
        return worker

    def ask(self, number: int, name: str = API) -> Ask:
        return Ask(number, name, self.claims[number])

    def held(self) -> list[int]:
        query = "select number from batchmill.holds where granted_at is not null order by ticket"
        return [number for (number,) in self.engine.rows(query)]


def test_at_most_as_many_attempts_hold_a_provider_as_it_has_slots(engine: Engine):
    world = World(engine, slots=2)
    one, other = world.worker(2), world.worker(2)
    assert engine.hold(one, world.ask(0), world.ask(1)).granted == [0, 1]
    assert engine.hold(other, world.ask(2), world.ask(3)).granted == []
    assert engine.hold(one, freed=[1]).granted == [0]
    assert engine.hold(other).granted == [2]


def test_slots_go_to_the_attempts_that_have_waited_longest_on_any_worker(engine: Engine):
    world = World(engine, slots=1)
    one, other = world.worker(3), world.worker(3)
    order = [(one, 0), (other, 3), (one, 1), (one, 2), (other, 5), (other, 4)]
    for worker, number in order:
        engine.hold(worker, world.ask(number))
    for worker, number in order:
        assert world.held() == [number]
        engine.hold(worker, freed=[number])
    assert world.held() == []


def test_a_worker_that_gets_a_slot_by_the_call_of_another_is_notified(sessions: Sessions):
    engine, listener = sessions(), sessions()
    world = World(engine, slots=1)
    one, other = world.worker(1), world.worker(2)
    listener.conn.execute("listen batchmill")
    engine.hold(one, world.ask(0))
    engine.hold(other, world.ask(1), world.ask(2))
    engine.hold(other, freed=[2])
    assert list(listener.conn.notifies(timeout=0.1)) == []
    engine.hold(one, freed=[0])
    (notice,) = listener.conn.notifies(timeout=10, stop_after=1)
    assert notice.payload == engine.call("topic", f"grants:{other}")


def test_the_end_of_an_attempt_frees_its_slots_and_its_place_in_the_queue(engine: Engine):
    world = World(engine, slots=1)
    worker = world.worker(3)
    engine.hold(worker, world.ask(0), world.ask(1), world.ask(2))
    engine.complete(world.claims[0])
    engine.release(world.claims[1])
    assert engine.hold(worker).granted == [2]


def test_slots_of_a_killed_worker_are_free_when_its_lease_lapses_and_not_before(engine: Engine):
    world = World(engine, slots=1)
    killed, waiting = world.worker(2), world.worker(1)
    engine.hold(killed, world.ask(0), world.ask(1))
    engine.hold(waiting, world.ask(2))
    engine.advance_clock(LEASE - 1)
    engine.call("renew_lease", waiting, LEASE)
    assert engine.hold(waiting).granted == []
    engine.advance_clock(2)
    assert engine.hold(waiting).granted == [2]
    assert engine.call("renew_lease", killed, LEASE) is None
    with pytest.raises(psycopg.Error) as refused:
        engine.hold(killed)
    assert refused.value.sqlstate == "BM010"


def test_a_worker_is_not_marked_lost_while_it_gets_a_slot(sessions: Sessions):
    """Otherwise it would start with a slot that no longer counts."""
    engine, holder, asking = sessions(), sessions(), sessions()
    world = World(engine, slots=1)
    slow, other = world.worker(1), world.worker(1)
    with holder.conn.transaction():
        holder.rows("select from batchmill.providers for update")
        call = Rival(lambda: asking.hold(slow, world.ask(0))).wait_until_blocked(asking)
        engine.advance_clock(LEASE + 1)
        engine.call("renew_lease", other, LEASE)
        engine.look_after(other)
        assert engine.call("renew_lease", slow, LEASE) == []
    assert call.result().granted == [0]
    assert engine.hold(other, world.ask(1)).granted == []


def test_a_repeated_call_changes_nothing(engine: Engine):
    world = World(engine, slots=1)
    worker = world.worker(3)
    for _ in range(2):
        assert engine.hold(worker, world.ask(0), world.ask(1)).granted == [0]
    for _ in range(2):
        assert engine.hold(worker, world.ask(2), freed=[0]).granted == [1]
    assert engine.value("select count(*) from batchmill.holds") == 2


def test_an_attempt_that_has_ended_is_refused(engine: Engine):
    world = World(engine, slots=1)
    worker = world.worker(1)
    engine.complete(world.claims[0])
    answer = engine.hold(worker, world.ask(0))
    assert (answer.refused, answer.unknown) == ([0], [])


def test_an_unknown_name_is_refused(engine: Engine):
    world = World(engine, slots=1)
    worker = world.worker(2)
    answer = engine.hold(worker, world.ask(0), world.ask(1, "provider:other"))
    assert (answer.granted, answer.refused, answer.unknown) == ([0], [1], ["provider:other"])


@pytest.mark.parametrize("seed", range(5))
def test_no_window_has_more_starts_than_the_rate(engine: Engine, seed: int):
    world = World(engine, rate=Rate(5, 10))
    worker = world.worker(60)
    engine.hold(worker, *map(world.ask, range(60)))
    pick = random.Random(seed)
    while len(world.held()) < 60:
        engine.advance_clock(pick.choice([0, 0.3, 2.5, 4, 11]))
        engine.call("renew_lease", worker, LEASE)
        engine.hold(worker)
    starts = [at for (at,) in engine.rows("select granted_at from batchmill.holds order by 1")]
    for first, sixth in zip(starts, starts[5:], strict=False):
        assert sixth - first >= timedelta(seconds=10)


def test_the_answer_says_when_the_rate_has_room_again(engine: Engine):
    world = World(engine, rate=Rate(2, 10))
    worker = world.worker(3)
    assert engine.hold(worker, world.ask(0)).wait is None
    engine.advance_clock(4)
    wait = engine.hold(worker, world.ask(1), world.ask(2)).wait
    # The time of a start is rounded up to hundredths of the period.
    assert wait is not None and 5 < wait <= 6.1
    engine.advance_clock(wait + 0.001)
    assert engine.hold(worker).granted == [0, 1, 2]


def test_a_freed_slot_does_not_give_back_its_start(engine: Engine):
    world = World(engine, slots=5, rate=Rate(2, 10))
    worker = world.worker(3)
    engine.hold(worker, world.ask(0), world.ask(1), world.ask(2))
    assert engine.hold(worker, freed=[0, 1]).granted == []


def test_lowered_slots_interrupt_no_attempt_and_raised_slots_are_used_at_once(engine: Engine):
    world = World(engine, slots=3)
    worker = world.worker(6)
    engine.hold(worker, *map(world.ask, range(6)))
    engine.set_limit(API, 1)
    assert world.held() == [0, 1, 2]
    assert engine.hold(worker, freed=[0, 1]).granted == [2]
    engine.set_limit(API, 2)
    assert world.held() == [2, 3]


def test_a_paused_provider_grants_nothing_until_it_is_resumed(engine: Engine):
    world = World(engine, slots=3)
    worker = world.worker(2)
    engine.set_limit(API, paused=True)
    assert engine.hold(worker, world.ask(0), world.ask(1)).granted == []
    engine.set_limit(API, paused=False)
    assert world.held() == [0, 1]


def test_what_the_code_declares_is_used_until_an_operator_sets_it_and_after_a_reset(engine: Engine):
    world = World(engine)
    worker = world.worker(9)
    engine.rows(queries()["declare_provider"] % DECLARED)
    engine.hold(worker, *map(world.ask, range(9)))
    assert len(world.held()) == 3
    engine.set_limit(API, 5)
    engine.rows(queries()["declare_provider"] % {**DECLARED, "slots": 4})
    assert len(world.held()) == 5
    engine.hold(worker, freed=[0, 1, 2])
    engine.set_limit(API, reset=True)
    engine.hold(worker, freed=[3, 4])
    assert len(world.held()) == 4


DECLARED = {"name": f"'{API}'", "slots": 3, "rate": "null", "period": "null"}


def test_the_upkeep_removes_what_ended_attempts_have_left(engine: Engine):
    world = World(engine, slots=1)
    worker = world.worker(3)
    engine.hold(worker, world.ask(0), world.ask(1), world.ask(2))
    engine.complete(*world.claims[:2])
    engine.tidy()
    assert engine.rows("select number from batchmill.holds") == [(2,)]


def test_claims_do_not_count_providers(engine: Engine):
    world = World(engine, slots=1)
    world.worker(1)
    assert engine.value("select count(*) from batchmill.limits") == 0
    assert engine.value("select batchmill.have_limits('{}')") is False


def test_the_cost_of_a_call_does_not_grow_with_the_attempts_that_wait_on_other_workers(
    engine: Engine,
):
    world = World(engine, slots=2)
    one = world.worker(5)
    engine.hold(one, *map(world.ask, range(5)))
    engine.conn.execute("analyze batchmill.holds")
    few = pages_read(engine, one)
    other = world.worker(3000)
    engine.hold(other, *map(world.ask, range(5, 3005)))
    assert pages_read(engine, one) < 2 * few + 10


def pages_read(engine: Engine, worker: int) -> int:
    """The minimum of three. The first call after a change also reads the catalogue."""
    explain = "explain (analyze, buffers, timing off, format json) "
    call = "select batchmill.hold_slots(%s, '{}', '{}', '{}', '{}', '{}')"
    plans = [engine.value(explain + call, worker)[0]["Plan"] for _ in range(3)]
    return min(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for plan in plans)
