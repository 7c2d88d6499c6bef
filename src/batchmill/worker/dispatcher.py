"""Records outcomes and claims jobs, in one call when both are due.

Outcomes that arrive during a call go into the next call, so blocks grow with the load.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

from batchmill.domain.demand import Delivered, Demand
from batchmill.domain.outcome import Outcome, unstorable
from batchmill.errors import InvalidInput, LeaseLost
from batchmill.store.backoff import Backoff
from batchmill.store.errors import is_unavailable
from batchmill.store.listen import Listener
from batchmill.store.topics import WORK
from batchmill.worker.delivery import Delivery
from batchmill.worker.executor import Executor
from batchmill.worker.outbox import Outbox

log = logging.getLogger("batchmill.worker")

FIRST_POLL = 0.02
LAST_POLL = 5.0
LAST_POLL_WITHOUT_NOTIFY = 0.5
FULL = 1.0
LIMITED = 1.0
BLOCK = 1_000

# Called with the duration of a call and its answer, or None if the call failed.
OnCall = Callable[[float, Delivered | None], None]


@dataclass(eq=False)
class CallSlot:
    """Makes one call at a time, over its own connection."""

    delivery: Delivery
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    under_way: Sequence[Outcome] = ()


class Dispatcher:
    """The first slot makes all calls. The other slots help when there is a backlog of outcomes, so
    that Postgres can process the next block while it commits one. They do not help when other
    workers are live: Postgres then has their blocks to process, and more calls from this worker
    would only wait for the same lanes."""

    def __init__(
        self,
        deliveries: Iterable[Delivery],
        executor: Executor,
        outbox: Outbox,
        listener: Listener,
        worker: int,
        on_unclear: Callable[[], Awaitable[None]],
        on_call: OnCall = lambda seconds, answer: None,
    ):
        self._slots = [CallSlot(delivery) for delivery in deliveries]
        self._executor = executor
        self._outbox = outbox
        self._listener = listener
        self._worker = worker
        self._on_unclear = on_unclear
        self._on_call = on_call
        self._poll = FIRST_POLL
        self._pause = 0.0
        self._is_claiming = True
        self._is_unclear = False
        self._none_ahead_until = 0.0
        self._is_alone = False
        # Set while the worker runs nothing, has recorded everything, and finds no job that is due.
        self.is_idle = asyncio.Event()

    @property
    def fences(self) -> set[int]:
        """The fences of attempts that have ended here but may not be recorded yet."""
        under_way = {ended.claim.fence for slot in self._slots for ended in slot.under_way}
        return self._outbox.fences | under_way

    async def stop_claiming(self) -> None:
        """Stops claiming, and waits for claims in flight. If they were interrupted, no executor
        would run their jobs."""
        self._is_claiming = False
        async with self._all_quiet():
            pass

    async def run(self) -> None:
        """Runs until the worker is no longer live."""
        first, *others = self._slots
        with self._listener.subscribe(WORK, self._outbox.wake_up):
            serving = {asyncio.create_task(self._serve(first))}
            serving |= {asyncio.create_task(self._help(slot)) for slot in others}
            try:
                done, _ = await asyncio.wait(serving, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in serving:
                    task.cancel()
                await asyncio.gather(*serving, return_exceptions=True)
        for task in done:
            task.result()

    async def _serve(self, slot: CallSlot) -> None:
        backoff = Backoff()
        with suppress(LeaseLost):
            while True:
                await self._something_to_do()
                await self._call(slot, backoff)

    async def _help(self, slot: CallSlot) -> None:
        backoff = Backoff()
        with suppress(LeaseLost):
            while True:
                while not self._pays_beside_another:
                    await self._outbox.more_backlog()
                await self._call(slot, backoff)
                # The first slot may have left outcomes to this one that are no longer a backlog.
                self._outbox.wake_up.set()

    async def _call(self, slot: CallSlot, backoff: Backoff) -> None:
        try:
            await self._clear_up()
            async with slot.busy:
                await self._exchange(slot)
        except Exception as error:
            if not is_unavailable(error):
                raise
            # Other slots do not need to wait for this call any more.
            self._outbox.wake_up.set()
            backoff.warn(log, "Cannot record outcomes and claim jobs; retrying: %s", error)
            await backoff.wait()
        else:
            backoff.reset()

    async def _something_to_do(self) -> None:
        """Waits until there are outcomes to record, or until it is time to claim."""
        while not self._pays():
            self._executor.release_late()
            has_room = self._demand() is not None
            if has_room and not self._pause:
                return
            if await self._outbox.wake_up.wait(self._pause if has_room else FULL):
                self._poll, self._pause = FIRST_POLL, 0.0
            elif has_room:
                return

    @property
    def _has_unrecorded(self) -> bool:
        return bool(self._outbox) or any(slot.under_way for slot in self._slots)

    @property
    def _pays_beside_another(self) -> bool:
        """Whether a call is worthwhile while another is in flight, although it may wait for the
        locks of that call."""
        return self._is_alone and self._outbox.has_backlog

    def _pays(self) -> bool:
        if any(slot.busy.locked() for slot in self._slots):
            return self._pays_beside_another
        return bool(self._outbox)

    @asynccontextmanager
    async def _all_quiet(self) -> AsyncIterator[None]:
        """Holds all slots, so that no call is in flight."""
        async with AsyncExitStack() as stack:
            for slot in self._slots:
                await stack.enter_async_context(slot.busy)
            yield

    async def _clear_up(self) -> None:
        """Asks Postgres which jobs this worker holds, because a claim may have committed although
        its answer was lost. The answers to all other claims must have arrived before."""
        if self._is_unclear and self._is_claiming:
            async with self._all_quiet():
                if self._is_unclear:
                    await self._on_unclear()
                    self._is_unclear = False

    async def _exchange(self, slot: CallSlot) -> None:
        demand, block = self._demand(), self._outbox.take(BLOCK)
        if not block and demand is None:
            return
        slot.under_way = block
        with self._executor.expecting(demand):
            answer = await self._answer(slot, demand)
        slot.under_way = ()
        self._outbox.recorded(block)
        for claim in answer.claims:
            self._executor.start(claim)
        if demand is not None:
            self._plan(demand, answer)

    async def _answer(self, slot: CallSlot, demand: Demand | None) -> Delivered:
        block = slot.under_way
        try:
            answer = await self._ask(slot, block, demand)
        except Exception as error:
            if is_unavailable(error) or isinstance(error, LeaseLost) or not block:
                self._outbox.put_back(block)
                slot.under_way = ()
                self._is_unclear |= demand is not None
                raise
            # Postgres refused something in the block. Record the block without a claim.
            await self._record(slot, block)
            return Delivered()
        log_refused(answer)
        return answer

    async def _ask(
        self, slot: CallSlot, block: Sequence[Outcome], demand: Demand | None
    ) -> Delivered:
        began = time.monotonic()
        try:
            answer = await slot.delivery.exchange(block, demand)
        except Exception:
            self._on_call(time.monotonic() - began, None)
            raise
        self._on_call(time.monotonic() - began, answer)
        return answer

    def _demand(self) -> Demand | None:
        want, prefetch = self._room()
        wants = self._executor.wants()
        is_behind = len(self._outbox) > 2 * BLOCK
        if not self._is_claiming or is_behind or not wants or not want + prefetch:
            return None
        want = min(want, BLOCK)
        return Demand(self._worker, wants, want, min(prefetch, BLOCK - want))

    def _room(self) -> tuple[int, int]:
        want, prefetch = self._executor.room()
        return want, 0 if time.monotonic() < self._none_ahead_until else prefetch

    def _plan(self, demand: Demand, answer: Delivered) -> None:
        """Sets the pause before the next claim."""
        found, wait = len(answer.claims), answer.wait
        self._is_alone = answer.is_alone
        is_ready = wait is not None and wait <= 0
        if found:
            self._poll = FIRST_POLL
        if found or is_ready or self._has_unrecorded or self._executor.attempts:
            self.is_idle.clear()
        else:
            self.is_idle.set()
        if answer.passed_over:
            # Jobs in limited lanes are never prefetched, so keep slots free for them.
            self._none_ahead_until = time.monotonic() + LIMITED
        if found == demand.want + demand.prefetch or (found and is_ready):
            self._pause = 0.0
        elif is_ready:
            # There is work in a lane that another worker has locked.
            self._pause = random.uniform(0.001, 0.01)
        else:
            longest = LAST_POLL if self._listener.is_listening else LAST_POLL_WITHOUT_NOTIFY
            self._pause = min(self._poll, longest, longest if wait is None else wait)
            self._poll = min(self._poll * 2, longest)

    async def _record(self, slot: CallSlot, block: Sequence[Outcome]) -> None:
        """Records a block without a claim, and retries until it succeeds. A lost answer is
        harmless, because Postgres refuses outcomes that are already recorded."""
        backoff = Backoff()
        while block:
            try:
                log_refused(await self._ask(slot, block, None))
            except InvalidInput as error:
                await self._record_apart(slot, list(block), error)
            except Exception as error:
                backoff.warn(log, "Cannot record %d outcomes; retrying: %s", len(block), error)
                await backoff.wait()
                continue
            return

    async def _record_apart(
        self, slot: CallSlot, block: list[Outcome], error: InvalidInput
    ) -> None:
        """Splits the block to isolate the outcome that cannot be stored. Fails only that job."""
        if len(block) > 1:
            middle = len(block) // 2
            await self._record(slot, block[:middle])
            await self._record(slot, block[middle:])
        elif block[0].kind == "failed":
            log.error("Cannot record that job %s failed: %s", block[0].claim.id, error)
        else:
            await self._record(slot, [unstorable(block[0], str(error))])


def log_refused(answer: Delivered) -> None:
    if answer.refused:
        log.warning(
            "Outcomes of jobs %s were refused: these attempts have already ended.", answer.refused
        )
