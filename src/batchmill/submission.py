"""Checks and serialises the payloads of a submit, and splits them into calls of bounded size."""

import asyncio
import hashlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self, TypedDict, TypeGuard, TypeVar

from pydantic_core import to_json

from batchmill.domain.limits import check_count
from batchmill.domain.notification import written_targets
from batchmill.domain.priority import checked_priority
from batchmill.domain.task import Place, Task
from batchmill.domain.text import checked_text
from batchmill.errors import IdempotencyConflict, InvalidInput, InvalidPayload
from batchmill.store import foreign
from batchmill.store.submissions import SubmissionStore
from batchmill.telemetry.tracing import submitting, with_trace

MOST_JOBS = 1_000_000
CALL_JOBS = 2_000
CALL_BYTES = 1_000_000
HANDFUL = 100
LONGEST = 86_400 * 3_660
MOST_LABELS = 64
# Options of a batch that `submit_one` does not take.
NOT_FOR_ONE = frozenset({"limit", "on_finish", "notify", "idempotency_key"})
# Years that Python, JSON clients and Postgres can all represent.
YEARS = range(1970, 9_000)

Seconds = float | timedelta
T = TypeVar("T")


class SubmitOptions(TypedDict, total=False):
    """Options of both batches and single jobs. A higher `priority` goes first in its lane.
    `expires_in` counts from when the work is due; the default is 30 days."""

    tenant: str
    priority: int
    delay: Seconds
    run_at: datetime
    expires_in: Seconds
    idempotency_key: str
    labels: Mapping[str, str]


class BatchOptions(SubmitOptions, total=False):
    """`limit` bounds how many of the batch's jobs run at once. `on_finish` is a task that gets a
    `BatchSummary` when all jobs have ended. `notify` lists the URLs and mail addresses to notify
    then."""

    limit: int
    on_finish: "Task[..., Any] | str"
    notify: str | Sequence[str]


class JobOptions(SubmitOptions, total=False):
    """While a job with the same `dedup_key` is live, the submit returns that job instead. A cached
    result for the `cache_key` completes the job at once."""

    dedup_key: str
    cache_key: str


@dataclass(frozen=True, slots=True)
class Item:
    """One payload of a batch, with its own options."""

    payload: Any = None
    priority: int | None = None
    delay: Seconds | None = None
    run_at: datetime | None = None
    dedup_key: str | None = None
    cache_key: str | None = None
    # Replaces the payload when a request is compared with an earlier one that has the same key.
    digest: str | None = None


class Blocks(AsyncIterable[Sequence[Any]]):
    """Items that arrive in blocks. Each block is processed in one step of the event loop. If they
    are `large`, no item is read before there is a connection to send it on."""

    def __init__(self, blocks: AsyncIterable[Sequence[Any]], *, large: bool):
        self._blocks = blocks
        self.large = large

    def __aiter__(self) -> AsyncIterator[Sequence[Any]]:
        return aiter(self._blocks)


@dataclass(frozen=True, slots=True)
class Slow:
    """An item that takes many steps of the event loop to read. `given_to` calls a function with the
    value, so that the value is held only while the function runs."""

    given_to: Callable[[Callable[[Any], Any]], Awaitable[Any]]


def enqueue_call(
    task: Task[..., Any], payload: Any, options: JobOptions, acting: str | None = None
) -> dict[str, Any]:
    """`acting` is the tenant that submits, if it is not the operator."""
    text = task.dump(payload)
    written = written_options(options)
    if task.key:
        written["key"] = task.key_of(text)
    if "idempotency_key" in written:
        written["digest"] = hashlib.sha256(to_json([task.name, text, written])).hexdigest()
    return {
        "task": task.name,
        "payload": text,
        "options": to_json(written | _checks(task) | _acting(acting)).decode(),
    }


async def send_on(
    connection: Any, submission: "Submission", items: Iterable[Any] | AsyncIterable[Any]
) -> None:
    """Makes all calls of a submission in the caller's open transaction.

    If there are several calls and one is refused, the earlier ones are rolled back, because the
    caller may go on with the transaction.
    """
    with submission.traced():
        if submission.is_for_one(items):
            call = with_trace(submission.only_call(items[0]))
            submission.learn(await foreign.submit_one_on(connection, call))
            return
        async with aclosing(submission.calls(items)) as calls:
            first = with_trace(await anext(calls))
            undoing = foreign.savepoint(connection) if submission.is_split else nullcontext()
            async with undoing:
                submission.learn(await foreign.submit_on(connection, first))
                async for call in calls:
                    await foreign.submit_on(connection, call)


async def send(
    store: SubmissionStore,
    submission: "Submission",
    items: Iterable[Any] | AsyncIterable[Any],
    *,
    tenant: str,
) -> None:
    """Makes all calls in one transaction. The next call is prepared while the previous one is in
    flight.

    The first call is prepared before the transaction begins. If it is the only call, and no
    idempotency key has to be locked, it runs without an explicit transaction.
    """
    large = isinstance(items, Blocks) and items.large
    key = submission.idempotency_key
    with submission.traced():
        if submission.is_for_one(items):
            submission.learn(await store.submit_one(with_trace(submission.only_call(items[0]))))
            return
        async with aclosing(submission.calls(items, gives_way=True)) as calls:
            first = None if large else await anext(calls)
            if first is not None and not submission.is_split and key is None:
                submission.learn(await store.submit(with_trace(first)))
                return
            begun = store.transaction(
                tenant=tenant, idempotency_key=key, large=large or submission.is_split
            )
            async with begun as conn, Overlap() as overlap:
                first = with_trace(first or await anext(calls))
                submission.learn(await store.submit_part(conn, first))
                async for call in calls:
                    await overlap.begin(store.submit_part, conn, call)


class Overlap:
    """Runs one function at a time in the background, while the block prepares the next one."""

    def __init__(self) -> None:
        self._under_way: asyncio.Task[Any] | None = None

    async def begin(self, function: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> None:
        await self._end()
        self._under_way = asyncio.create_task(function(*args))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self._end()
        elif self._under_way is not None:
            self._under_way.cancel()
            await asyncio.gather(self._under_way, return_exceptions=True)

    async def _end(self) -> None:
        if self._under_way is not None:
            await self._under_way


class Submission:
    """A batch that is being submitted: `add` items, `take` a call when it is full, and `learn` from
    the answer to the first call. `acting` is the tenant that submits, if it is not the operator."""

    def __init__(self, task: Task[..., Any], options: BatchOptions, acting: str | None = None):
        self._task = task
        self._acting = _acting(acting)
        self._options = written_options(options)
        self._digest = hashlib.sha256()
        if "idempotency_key" in self._options:
            self._digest.update(to_json([task.name, self._options]))
        self._earlier_digest: str | None = None
        self._payloads: list[str] = []
        self._options_at: dict[int, str] = {}
        self._size = 0
        self._count = 0
        self.is_split = False
        self.batch_id: str | None = None

    @property
    def idempotency_key(self) -> str | None:
        return self._options.get("idempotency_key")

    @property
    def targets(self) -> list[str]:
        """The URLs and mail addresses to notify when the batch finishes."""
        return self._options.get("notify", [])

    @property
    def tenant(self) -> str:
        return self._options.get("tenant", "default")

    @property
    def is_full(self) -> bool:
        return len(self._payloads) >= CALL_JOBS or self._size >= CALL_BYTES

    @property
    def is_repeated(self) -> bool:
        """True if an earlier request used the key. Other items are only compared, not sent."""
        return self._earlier_digest is not None

    def add(self, given: Any) -> None:
        item = given if isinstance(given, Item) else None
        payload = self._dumped(given if item is None else item.payload)
        options = self._item_options(item, payload) if item or self._task.key else ""
        self._count += 1
        if self._count > MOST_JOBS:
            raise InvalidInput(f"A batch can have at most {MOST_JOBS:,} jobs.")
        if "idempotency_key" in self._options:
            same = item.digest if item and item.digest is not None else payload
            self._digest.update(_item_text(same, options).encode())
        if not self.is_repeated:
            if options:
                self._options_at[len(self._payloads)] = options
            self._payloads.append(payload)
            self._size += len(payload) + len(options)

    def take(self, *, more: bool) -> dict[str, Any]:
        if self._count == 0:
            raise InvalidInput("There is nothing to submit: a batch needs at least one job.")
        self.is_split |= more
        options = self._options | _checks(self._task) | self._acting | {"more": more}
        if not self._options_at:
            options["bare"] = True
        if self.batch_id:
            options["batch_id"] = self.batch_id
        if "idempotency_key" in options and not more:
            options["digest"] = self._digest.hexdigest()
        items = f"[{','.join(self._item_texts())}]"
        self._payloads, self._options_at, self._size = [], {}, 0
        return {"task": self._task.name, "items": items, "options": to_json(options).decode()}

    def is_for_one(self, items: Iterable[Any] | AsyncIterable[Any]) -> TypeGuard[Sequence[Any]]:
        """Whether the batch has one payload, and nothing that the function `submit_one` cannot
        store."""
        return (
            isinstance(items, list | tuple)
            and len(items) == 1
            and not isinstance(items[0], Item | Slow)
            and self._task.key is None
            and self._options.keys().isdisjoint(NOT_FOR_ONE)
        )

    def only_call(self, payload: Any) -> dict[str, Any]:
        """The call of `submit_one`."""
        text = self._dumped(payload)
        self._count = 1
        options = self._options | _checks(self._task) | self._acting
        return {"task": self._task.name, "payload": text, "options": to_json(options).decode()}

    async def calls(
        self, items: Iterable[Any] | AsyncIterable[Any], *, gives_way: bool = False
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yields every call of the submission. Pass the answer to the first call to `learn` before
        asking for the second. With `gives_way`, other tasks of the event loop run while items are
        read."""
        async for some in _read(items):
            for item in some:
                if self.is_full:
                    yield self.take(more=True)
                if isinstance(item, Slow):
                    await item.given_to(self.add)
                else:
                    self.add(item)
                if gives_way and self._count % HANDFUL == 0:
                    await asyncio.sleep(0)
        if self.is_repeated:
            self._compare()
        else:
            yield self.take(more=False)

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Records a span for the submit while the block runs."""
        with submitting(self._task.name) as attributes:
            yield
            attributes["batchmill.batch_id"] = self.batch_id
            attributes["messaging.batch.message_count"] = self._count

    def learn(self, answer: Mapping[str, Any]) -> None:
        self.batch_id = answer["batch_id"]
        self._earlier_digest = answer.get("digest")

    def _compare(self) -> None:
        if self._earlier_digest != self._digest.hexdigest():
            key = self._options["idempotency_key"]
            raise IdempotencyConflict(f'The idempotency key "{key}" was used for another request.')

    def _dumped(self, payload: Any) -> str:
        try:
            return self._task.dump(payload)
        except InvalidPayload as error:
            raise InvalidPayload(f"item {self._count}: {error.path}", error.reason) from None

    def _item_texts(self) -> Iterable[str]:
        if not self._options_at:
            return self._payloads
        return (_item_text(p, self._options_at.get(n, "")) for n, p in enumerate(self._payloads))

    def _item_options(self, item: Item | None, payload: str) -> str:
        own = written_options({n: getattr(item, n, None) for n in ITEM_OPTIONS})
        if self._task.key:
            own["key"] = self._task.key_of(payload)
        return to_json(own).decode()[1:-1]


def _item_text(payload: str, options: str) -> str:
    return f'{{"payload":{payload},{options}}}' if options else f'{{"payload":{payload}}}'


def _checks(task: Task[..., Any]) -> dict[str, bool]:
    """Lets the database skip checks that were made here. Tasks that are not registered in this
    process are checked by the database."""
    return {} if task.place is Place.ELSEWHERE else {"checked": True}


def _acting(tenant: str | None) -> dict[str, str]:
    """Makes a submit on a connection of the operator count as one of the tenant."""
    return {} if tenant is None else {"as_tenant": tenant}


async def _read(items: Iterable[Any] | AsyncIterable[Any]) -> AsyncIterator[Iterable[Any]]:
    """Yields items that are already in memory as one block: an async step for each item would cost
    more than all other work on it."""
    if isinstance(items, Blocks):
        async for block in items:
            yield block
    elif isinstance(items, AsyncIterable):
        async for item in items:
            yield (item,)
    else:
        yield items


ITEM_OPTIONS = ("priority", "delay", "run_at", "dedup_key", "cache_key")


def written_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Converts options to what the SQL functions take. Raises InvalidInput for invalid ones."""
    if options.get("delay") is not None and options.get("run_at") is not None:
        raise InvalidInput("Give either delay or run_at, not both.")
    return {name: _written(name, value) for name, value in options.items() if value is not None}


def _written(name: str, value: Any) -> Any:
    match name:
        case "delay" | "expires_in":
            return _seconds(name, value)
        case "run_at":
            return _moment(value)
        case "priority":
            return checked_priority(value)
        case "limit":
            check_count("The limit of a batch", value, at_least=1)
            return value
        case "on_finish":
            return _task_name(value)
        case "notify":
            return written_targets(value)
        case "labels":
            if not isinstance(value, Mapping):
                raise InvalidInput(f"labels must be a mapping of names to values, not {value!r}.")
            if len(value) > MOST_LABELS:
                raise InvalidInput(
                    f"A batch or job can have at most {MOST_LABELS} labels, not {len(value)}."
                )
            return {
                checked_text("A label", k): checked_text("A label", v) for k, v in value.items()
            }
        case "tenant" | "idempotency_key" | "dedup_key" | "cache_key" | "key" | "schedule":
            return checked_text(name, value)
        case _:
            raise InvalidInput(f'There is no option "{name}".')


def _seconds(name: str, value: Seconds) -> float:
    amount = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(amount, int | float) or not 0 <= amount <= LONGEST:
        raise InvalidInput(f"{name} must be from 0 seconds to ten years, not {value!r}.")
    return amount


def _moment(value: datetime) -> str:
    if not isinstance(value, datetime):
        raise InvalidInput(f"run_at must be a datetime, not {value!r}.")
    if value.tzinfo is None:
        raise InvalidInput(f"run_at needs a time zone: {value.isoformat()} has none.")
    if value.year not in YEARS:
        raise InvalidInput(
            f"run_at must be between the years 1970 and 9000, not {value.isoformat()}."
        )
    return value.isoformat()


def _task_name(value: Task[..., Any] | str) -> str:
    name = value.name if isinstance(value, Task) else value
    if not isinstance(name, str):
        raise InvalidInput(f"on_finish must be a task or the name of a task, not {value!r}.")
    return name
