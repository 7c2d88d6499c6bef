"""The slots of providers that attempts of this worker hold or wait for.

All attempts share one call: what they ask for and free during a call goes into the next one. An
attempt that waits awaits a future, and holds no connection and no transaction.
"""

import asyncio
import itertools
import logging
from collections import defaultdict
from dataclasses import dataclass

from batchmill.domain.job import Claim
from batchmill.domain.limits import check_provider
from batchmill.errors import LeaseLost, NotFound
from batchmill.store import topics
from batchmill.store.backoff import Backoff
from batchmill.store.errors import is_unavailable, lease_lost
from batchmill.store.listen import Listener, WakeUp
from batchmill.store.providers import Ask, Holds, SlotConnection

log = logging.getLogger("batchmill.worker")

POLL = 1.0
POLL_WITHOUT_NOTIFY = 0.2
# Seconds after which an unused connection is closed.
IDLE = 60.0


@dataclass(slots=True, eq=False)
class Ticket:
    """An attempt that holds a slot, or waits for it."""

    ask: Ask
    granted: asyncio.Future[None]


class Limiter:
    def __init__(self, slots: SlotConnection, listener: Listener):
        self._slots = slots
        self._listener = listener
        self._numbers = itertools.count(1)
        self._tickets: dict[int, Ticket] = {}
        self._numbers_of: defaultdict[int, set[int]] = defaultdict(set)
        # What the next call sends, beside all tickets that wait.
        self._freed: set[int] = set()
        self._wake_up = WakeUp()

    async def enter(self, claim: Claim, name: str) -> int:
        """Waits for a slot. Returns the number to free it with."""
        check_provider(name)
        number = next(self._numbers)
        ticket = Ticket(Ask(number, name, claim), asyncio.get_running_loop().create_future())
        self._tickets[number] = ticket
        self._numbers_of[claim.fence].add(number)
        self._wake_up.set()
        try:
            await ticket.granted
        except BaseException:
            self.leave(number)
            raise
        return number

    def leave(self, number: int) -> None:
        """Frees a slot, or gives up waiting for it. Postgres learns of it with the next call."""
        ticket = self._tickets.pop(number, None)
        if ticket is not None:
            fence = ticket.ask.claim.fence
            self._numbers_of[fence].discard(number)
            if not self._numbers_of[fence]:
                del self._numbers_of[fence]
            self._freed.add(number)
            self._wake_up.set()

    def end(self, claim: Claim) -> None:
        """Frees what an ended attempt has not freed itself."""
        for number in list(self._numbers_of.get(claim.fence, ())):
            self._tickets[number].granted.cancel()
            self.leave(number)

    async def run(self, worker: int) -> None:
        """Runs until the worker is no longer live."""
        backoff = Backoff()
        pause = IDLE
        with self._listener.subscribe(topics.grants(worker), self._wake_up):
            while True:
                was_idle = not await self._wake_up.wait(pause) and pause == IDLE
                try:
                    if was_idle:
                        await self._slots.close()
                    pause = await self._call(worker)
                    backoff.reset()
                except LeaseLost:
                    return
                except Exception as error:
                    if not is_unavailable(error):
                        raise
                    backoff.warn(log, "Cannot ask for slots of providers; retrying: %s", error)
                    pause = backoff.next_delay()

    async def _call(self, worker: int) -> float:
        """Returns the seconds until the next call, unless a wake-up comes before."""
        if self._freed or self._is_waiting:
            answer = await self._exchange(worker)
            if self._is_waiting:
                longest = POLL if self._listener.is_listening else POLL_WITHOUT_NOTIFY
                return longest if answer.wait is None else min(answer.wait, longest)
        return IDLE

    @property
    def _is_waiting(self) -> bool:
        return any(not ticket.granted.done() for ticket in self._tickets.values())

    async def _exchange(self, worker: int) -> Holds:
        """Asks again for every ticket that waits: a database that failed over may have lost it."""
        freed, self._freed = self._freed, set()
        asked = [ticket.ask for ticket in self._tickets.values() if not ticket.granted.done()]
        try:
            answer = await self._slots.hold(worker, freed, asked)
        except BaseException:
            self._freed |= freed
            raise
        self._settle(answer)
        return answer

    def _settle(self, answer: Holds) -> None:
        for number in answer.granted:
            ticket = self._tickets.get(number)
            if ticket is None:
                # The attempt left during the call, or the answer to an earlier call was lost.
                self._freed.add(number)
                self._wake_up.set()
            elif not ticket.granted.done():
                ticket.granted.set_result(None)
        for number in answer.refused:
            ticket = self._tickets.get(number)
            if ticket is not None and not ticket.granted.done():
                ticket.granted.set_exception(_refusal(ticket.ask, answer))


def _refusal(ask: Ask, answer: Holds) -> Exception:
    if ask.name not in answer.unknown:
        return lease_lost(ask.claim)
    return NotFound(
        f'There is no limit "{ask.name}". Declare it beside the tasks with '
        f'mill.limit("{ask.name}", slots=…, rate=…).'
    )
