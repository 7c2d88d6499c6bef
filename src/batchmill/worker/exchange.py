"""Where a worker's outcomes go and its jobs come from, in one call where both are due.

Whatever gathers while one call is under way is the next one: blocks are as large as it is busy.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

from batchmill.domain.exchange import Demand, Exchanged
from batchmill.domain.outcome import Outcome, unstorable
from batchmill.errors import InvalidInput, LeaseLost
from batchmill.store.backoff import Backoff
from batchmill.store.errors import is_unavailable
from batchmill.store.listen import Bell, Listener
from batchmill.worker.delivery import Delivery
from batchmill.worker.executor import Executor

log = logging.getLogger("batchmill.worker")

FIRST_POLL = 0.02
LAST_POLL = 5.0
LAST_POLL_DEAF = 0.5
FULL = 1.0
LIMITED = 1.0
BLOCK = 1_000
CROWD = 500

# How long a call took, and the answer if there was one.
OnCall = Callable[[float, Exchanged | None], None]


@dataclass(eq=False)
class Clerk:
    """Makes one call at a time, over a connection of its own."""

    delivery: Delivery
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    under_way: Sequence[Outcome] = ()


class Exchange:
    """The first clerk does all there is to do; others help when outcomes crowd. While Postgres
    commits for one, it has the next block at hand. Where there are other workers, theirs is at
    hand, and more calls would only queue for the same lanes."""

    def __init__(
        self,
        deliveries: Iterable[Delivery],
        executor: Executor,
        listener: Listener,
        worker: int,
        on_unclear: Callable[[], Awaitable[None]],
        on_call: OnCall = lambda seconds, answer: None,
    ):
        self._clerks = [Clerk(delivery) for delivery in deliveries]
        self._executor = executor
        self._listener = listener
        self._worker = worker
        self._on_unclear = on_unclear
        self._on_call = on_call
        self._waiting: deque[Outcome] = deque()
        self._crowded = asyncio.Event()
        self._all_recorded = asyncio.Event()
        self._all_recorded.set()
        self._bell = Bell()
        self._poll = FIRST_POLL
        self._pause = 0.0
        self._is_claiming = True
        self._is_unclear = False
        self._none_ahead_until = 0.0
        self._is_alone = False

    def add(self, outcome: Outcome | None) -> None:
        """An attempt has ended, with something to record or not; there is room for another."""
        if outcome is not None:
            self._waiting.append(outcome)
            self._all_recorded.clear()
            if self._is_crowded:
                self._crowded.set()
        self._bell.ring()

    @property
    def fences(self) -> set[int]:
        """Of the attempts that have ended here but may not be recorded yet."""
        under_way = (ended for clerk in self._clerks for ended in clerk.under_way)
        return {ended.claim.fence for ended in (*self._waiting, *under_way)}

    async def stop_claiming(self) -> None:
        """A claim under way is still taken in: cut off, its jobs would be nobody's."""
        self._is_claiming = False
        async with self._all_quiet():
            pass

    def drop(self) -> None:
        """Forgets what waits: the lease is lost, and all of it would be refused."""
        self._waiting.clear()

    async def all_recorded(self) -> None:
        await self._all_recorded.wait()

    async def run(self) -> None:
        """Ends when the worker is no longer live."""
        first, *others = self._clerks
        with self._listener.bell("work") as self._bell:
            serving = {asyncio.create_task(self._serve(first))}
            serving |= {asyncio.create_task(self._help(clerk)) for clerk in others}
            try:
                done, _ = await asyncio.wait(serving, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in serving:
                    task.cancel()
                await asyncio.gather(*serving, return_exceptions=True)
        for task in done:
            task.result()

    async def _serve(self, clerk: Clerk) -> None:
        backoff = Backoff()
        with suppress(LeaseLost):
            while True:
                await self._something_to_do()
                await self._call(clerk, backoff)

    async def _help(self, clerk: Clerk) -> None:
        backoff = Backoff()
        with suppress(LeaseLost):
            while True:
                await self._crowd()
                await self._call(clerk, backoff)
                # The first may have left for this what is less than a crowd.
                self._bell.ring()

    async def _call(self, clerk: Clerk, backoff: Backoff) -> None:
        try:
            await self._clear_up()
            async with clerk.busy:
                await self._exchange(clerk)
        except Exception as error:
            if not is_unavailable(error):
                raise
            # The others need not wait for this one any more.
            self._bell.ring()
            backoff.warn(log, "Cannot hand over outcomes or claim jobs yet: %s", error)
            await backoff.wait()
        else:
            backoff.reset()

    async def _something_to_do(self) -> None:
        """Waits until there is something to record, or time to look for work."""
        while not self._is_worth_a_call():
            self._executor.release_late()
            has_room = self._demand() is not None
            if has_room and not self._pause:
                return
            if await self._bell.wait(self._pause if has_room else FULL):
                self._poll, self._pause = FIRST_POLL, 0.0
            elif has_room:
                return

    async def _crowd(self) -> None:
        while not self._is_crowded:
            self._crowded.clear()
            await self._crowded.wait()

    @property
    def _is_crowded(self) -> bool:
        return self._is_alone and len(self._waiting) >= CROWD

    def _is_worth_a_call(self) -> bool:
        """Anything is, but beside another call, which it would have to wait for, only a crowd."""
        is_busy = any(clerk.busy.locked() for clerk in self._clerks)
        return self._is_crowded if is_busy else bool(self._waiting)

    @asynccontextmanager
    async def _all_quiet(self) -> AsyncIterator[None]:
        """While no call is under way."""
        async with AsyncExitStack() as stack:
            for clerk in self._clerks:
                await stack.enter_async_context(clerk.busy)
            yield

    async def _clear_up(self) -> None:
        """Not a claim may have been lost, but only the answer to it. What else was claimed has to
        be known by then."""
        if self._is_unclear and self._is_claiming:
            async with self._all_quiet():
                if self._is_unclear:
                    await self._on_unclear()
                    self._is_unclear = False

    async def _exchange(self, clerk: Clerk) -> None:
        demand, block = self._demand(), self._take()
        if not block and demand is None:
            return
        clerk.under_way = block
        with self._executor.expecting(demand):
            answer = await self._answer(clerk, demand)
        clerk.under_way = ()
        if not self._waiting and not any(other.under_way for other in self._clerks):
            self._all_recorded.set()
        for claim in answer.claims:
            self._executor.start(claim)
        if demand is not None:
            self._plan(demand, answer)

    async def _answer(self, clerk: Clerk, demand: Demand | None) -> Exchanged:
        block = clerk.under_way
        try:
            answer = await self._ask(clerk, block, demand)
        except Exception as error:
            if is_unavailable(error) or isinstance(error, LeaseLost) or not block:
                self._waiting.extendleft(reversed(block))
                clerk.under_way = ()
                self._is_unclear |= demand is not None
                raise
            # Neither has to suffer from what is wrong with the other: the next round claims.
            await self._record(clerk, block)
            return Exchanged()
        log_refused(answer)
        return answer

    async def _ask(
        self, clerk: Clerk, block: Sequence[Outcome], demand: Demand | None
    ) -> Exchanged:
        began = time.monotonic()
        try:
            answer = await clerk.delivery.exchange(block, demand)
        except Exception:
            self._on_call(time.monotonic() - began, None)
            raise
        self._on_call(time.monotonic() - began, answer)
        return answer

    def _demand(self) -> Demand | None:
        want, spare = self._room()
        wants = self._executor.wants()
        is_behind = len(self._waiting) > 2 * BLOCK
        if not self._is_claiming or is_behind or not wants or not want + spare:
            return None
        want = min(want, BLOCK)
        return Demand(self._worker, wants, want, min(spare, BLOCK - want))

    def _room(self) -> tuple[int, int]:
        want, spare = self._executor.room()
        return want, 0 if time.monotonic() < self._none_ahead_until else spare

    def _take(self) -> Sequence[Outcome]:
        count = min(BLOCK, len(self._waiting))
        return [self._waiting.popleft() for _ in range(count)]

    def _plan(self, demand: Demand, answer: Exchanged) -> None:
        """When to look again."""
        found, wait = len(answer.claims), answer.wait
        self._is_alone = answer.is_alone
        is_ready = wait is not None and wait <= 0
        if found:
            self._poll = FIRST_POLL
        if answer.passed_over:
            # Nothing is taken ahead from limited lanes, so those have to find a free slot.
            self._none_ahead_until = time.monotonic() + LIMITED
        if found == demand.want + demand.spare or (found and is_ready):
            self._pause = 0.0
        elif is_ready:
            # There is work in a lane that another worker holds at this moment.
            self._pause = random.uniform(0.001, 0.01)
        else:
            longest = LAST_POLL if self._listener.hears else LAST_POLL_DEAF
            self._pause = min(self._poll, longest, longest if wait is None else wait)
            self._poll = min(self._poll * 2, longest)

    async def _record(self, clerk: Clerk, block: Sequence[Outcome]) -> None:
        """By itself, until it is done: an answer that was lost on the way is harmless, since what
        was recorded is refused from then on."""
        backoff = Backoff()
        while block:
            try:
                log_refused(await self._ask(clerk, block, None))
            except InvalidInput as error:
                await self._record_apart(clerk, list(block), error)
            except Exception as error:
                backoff.warn(log, "Cannot record %d outcomes yet: %s", len(block), error)
                await backoff.wait()
                continue
            return

    async def _record_apart(self, clerk: Clerk, block: list[Outcome], error: InvalidInput) -> None:
        """Something in the block cannot be stored: finds it, and fails only that."""
        if len(block) > 1:
            middle = len(block) // 2
            await self._record(clerk, block[:middle])
            await self._record(clerk, block[middle:])
        elif block[0].kind == "failed":
            log.error("Cannot record that job %s failed: %s", block[0].claim.id, error)
        else:
            await self._record(clerk, [unstorable(block[0].claim, str(error))])


def log_refused(answer: Exchanged) -> None:
    if answer.refused:
        log.warning("Too late to record jobs %s: they were given up for lost.", answer.refused)
