"""Divides the time of the event loop: a caller with many requests delays only its own.

A request runs in steps, each from one wait to the next. A step waits for its turn if it would delay
a caller that has used less of the loop. If no other caller has work, no step waits.
"""

import asyncio
import heapq
import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from types import coroutine
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from batchmill.urgency import is_urgent

# Time that a caller may use after it was idle, before the others go first.
CREDIT_SECONDS = 0.05
# Time for the steps of one iteration of the event loop. After it, the loop polls for new input.
ITERATION_SECONDS = 0.001
# Above this number, some idle callers are forgotten.
MOST_CALLERS = 1_000
# The weight of the last step in the average.
NEWEST = 0.05


class Member(ABC):
    """A member of a group. The member that has used least goes first. `used` is in seconds; only
    differences between members of one group are meaningful."""

    def __init__(self, group: "Group | None"):
        self.group = group
        self.used = 0.0
        self.is_queued = False

    @abstractmethod
    def has_work(self) -> bool:
        """Whether a step waits."""

    @abstractmethod
    def pop(self) -> asyncio.Future[None]:
        """Takes the next waiting step. Call it only if there is one."""

    def queue(self) -> None:
        if self.group is not None and not self.is_queued and self.has_work():
            self.group.add(self)

    @property
    def places(self) -> Iterator[tuple["Group", "Member"]]:
        """Its group and itself, then that group's parent and that group, and so on."""
        member: Member = self
        while (group := member.group) is not None:
            yield group, member
            member = group


class Account(Member):
    """The time that one caller has used, and its waiting steps."""

    def __init__(self, group: "Group"):
        super().__init__(group)
        self._waiting: deque[asyncio.Future[None]] = deque()

    def has_work(self) -> bool:
        while self._waiting and self._waiting[0].done():
            # The request was cancelled.
            self._waiting.popleft()
        return bool(self._waiting)

    def wait(self) -> asyncio.Future[None]:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        for _, member in self.places:
            member.queue()
        return waiting

    def pop(self) -> asyncio.Future[None]:
        return self._waiting.popleft()


class Group(Member):
    def __init__(self, group: "Group | None" = None):
        super().__init__(group)
        # The least time that a member with work has used. It never decreases.
        self._place = 0.0
        self._accounts: dict[str, Account] = {}
        self._heap: list[tuple[float, int, Member]] = []
        self._entries = 0

    def __len__(self) -> int:
        return len(self._accounts)

    def account(self, caller: str) -> Account:
        if (found := self._accounts.get(caller)) is None:
            if len(self._accounts) >= MOST_CALLERS:
                self._forget()
            found = self._accounts[caller] = Account(self)
        return found

    def add(self, member: Member) -> None:
        member.is_queued = True
        self._entries += 1
        heapq.heappush(self._heap, (member.used, self._entries, member))

    def has_work(self) -> bool:
        return self._least() < math.inf

    def pop(self) -> asyncio.Future[None]:
        member = heapq.heappop(self._heap)[2]
        member.is_queued = False
        granted = member.pop()
        member.queue()
        return granted

    def enter(self, member: Member) -> None:
        """An idle member accumulates no more time than its credit."""
        member.used = max(member.used, self._place - CREDIT_SECONDS)

    def is_next(self, member: Member) -> bool:
        return member.used <= self._least()

    def has_credit(self, member: Member) -> bool:
        return member.used < self._place - CREDIT_SECONDS / 2

    def count(self, member: Member, seconds: float) -> None:
        member.used += seconds
        self._place = max(self._place, min(member.used, self._least()))

    def _least(self) -> float:
        """The time that the next member has used; infinity if no member waits."""
        while self._heap:
            place, _, member = self._heap[0]
            if place == member.used and member.has_work():
                return place
            # The member has used more since it was queued, or has no waiting step any more.
            heapq.heappop(self._heap)
            member.is_queued = False
            member.queue()
        return math.inf

    def _forget(self) -> None:
        """Forgets half of the idle callers, those that have used least. A caller that returns gets
        a new credit."""
        idle = [name for name, each in self._accounts.items() if not each.has_work()]
        idle.sort(key=lambda name: self._accounts[name].used)
        for name in idle[: len(idle) // 2 + 1]:
            del self._accounts[name]


class Steps:
    """Divides the time of the event loop between tenants. All callers without a known key share the
    time of one tenant, so many addresses do not help. Their addresses divide that time."""

    def __init__(self, clock: Callable[[], float] = time.thread_time):
        self.tenants = Group()
        self.strangers = Group(self.tenants)
        self._clock = clock
        # The time that steps have used in this iteration of the event loop.
        self._used = 0.0
        self._average = ITERATION_SECONDS / 10
        self._is_pumping = False

    @coroutine
    def run(self, caller: Account, work: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
        """Runs the work of a request on its caller's account, whatever it awaits."""
        value: Any = None
        error: BaseException | None = None
        while True:
            if error is None and not self._may_go(caller):
                try:
                    self._pump_soon()
                    yield from caller.wait()
                except BaseException as raised:
                    error = raised
            began = self._clock()
            try:
                awaited = work.send(value) if error is None else work.throw(error)
            except StopIteration:
                return
            finally:
                self._count(caller, self._clock() - began)
            value = error = None
            try:
                value = yield awaited
            except BaseException as raised:
                error = raised

    def _may_go(self, caller: Account) -> bool:
        """A caller with credit does not wait: it delays the others by its credit at most."""
        if is_urgent():
            return True
        has_credit = is_next = True
        for group, member in caller.places:
            group.enter(member)
            has_credit &= group.has_credit(member)
            is_next &= group.is_next(member)
        is_next &= self._used < ITERATION_SECONDS
        return (has_credit or is_next) and not caller.has_work()

    def _count(self, caller: Account, seconds: float) -> None:
        for group, member in caller.places:
            group.count(member, seconds)
        self._used += seconds
        self._average += (seconds - self._average) * NEWEST
        self._pump_soon()

    def _pump_soon(self) -> None:
        if not self._is_pumping:
            self._is_pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Runs once per iteration of the loop, as long as there are steps."""
        self._is_pumping = False
        self._used = 0.0
        expected = 0.0
        while expected < ITERATION_SECONDS and self.tenants.has_work():
            self.tenants.pop().set_result(None)
            expected += self._average
            self._pump_soon()


class Stepwise:
    """An ASGI application whose requests share the event loop; `find` returns the caller."""

    def __init__(self, app: ASGIApp, steps: Steps, find: Callable[[Scope], Account]):
        self._app = app
        self._steps = steps
        self._find = find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work: Any = self._app(scope, receive, send)
        if scope["type"] != "http":
            await work
        else:
            await self._steps.run(self._find(scope), work)  # type: ignore[misc]
