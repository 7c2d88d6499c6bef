"""What a submit sends: calls of limited size, items, digests, and options."""

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any, Unpack, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill import submission
from batchmill.domain.handler import HandlerSignature
from batchmill.domain.payload import Codec
from batchmill.domain.task import Place, Task
from batchmill.errors import IdempotencyConflict, InvalidInput, InvalidLimit, InvalidPayload
from batchmill.registry import Registry
from batchmill.store.submissions import SubmissionStore
from batchmill.submission import (
    BatchOptions,
    Blocks,
    Item,
    Slow,
    Submission,
    enqueue_call,
    send,
    written_options,
)


def double(n: int) -> int:
    return 2 * n


def task(**options: Any) -> Task[..., Any]:
    signature = HandlerSignature.of(double)
    codecs = {"payload": Codec(signature.payload), "result": Codec(signature.result)}
    return Task("double", double, signature, place=Place.THREAD, **codecs, **options)


def sent(
    items: Iterable[Any], /, *, to: Task[..., Any] | None = None, **options: Any
) -> list[tuple[list[Any], dict[str, Any]]]:
    """Returns the items and options of each call. The first answer is that of a new batch."""
    under_way = Submission(to or task(), options)  # pyright: ignore[reportArgumentType]
    calls = made(under_way, items, {"batch_id": "b"})
    return [(json.loads(call["items"]), json.loads(call["options"])) for call in calls]


def made(
    under_way: Submission, items: Iterable[Any] | AsyncIterable[Any], answer: dict[str, Any]
) -> list[dict[str, Any]]:
    """Returns the calls that a submission makes if the first one gets this answer."""

    async def collect() -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []
        async for call in under_way.calls(items):
            calls.append(call)
            if len(calls) == 1:
                under_way.learn(answer)
        return calls

    return asyncio.run(collect())


def digest(items: Iterable[Any], /, **options: Any) -> str:
    return sent(items, idempotency_key="k", **options)[-1][1]["digest"]


# Calls of limited size.


def test_a_small_batch_is_one_call():
    ((items, options),) = sent([1, 2], tenant="ann")
    assert items == [1, 2]
    assert options == {"tenant": "ann", "checked": True, "more": False, "bare": True}


@given(st.integers(1, 40), st.integers(1, 10))
def test_a_large_batch_is_sent_in_several_calls_without_losing_items(count: int, most: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(submission, "CALL_JOBS", most)
        calls = sent(range(count))
    assert [item for items, _ in calls for item in items] == list(range(count))
    assert all(len(items) <= most for items, _ in calls)
    assert [options["more"] for _, options in calls] == [True] * (len(calls) - 1) + [False]
    assert [options.get("batch_id") for _, options in calls] == [None] + ["b"] * (len(calls) - 1)


def test_calls_with_large_payloads_have_fewer_items():
    anything = Task("any", double, HandlerSignature.of(double), Codec(), Codec(), Place.THREAD)
    calls = sent(["x" * 250_000] * 9, to=anything)
    assert [len(items) for items, _ in calls] == [4, 4, 1]


def test_an_empty_batch_is_refused():
    with pytest.raises(InvalidInput, match="There is nothing to submit"):
        sent([])


def test_a_batch_over_the_limit_of_jobs_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(submission, "MOST_JOBS", 3)
    sent(range(3))
    with pytest.raises(InvalidInput, match="A batch can have at most 3 jobs"):
        sent(range(4))


def test_items_can_come_from_an_async_generator():
    async def numbers() -> AsyncIterator[int]:
        for n in range(3):
            yield n

    (call,) = made(Submission(task(), {}), numbers(), {"batch_id": "b"})
    assert json.loads(call["items"]) == [0, 1, 2]


class FakeStore:
    """A store that returns given answers and reports its transactions."""

    def __init__(
        self,
        answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]],
        on_begin: Callable[[bool], None] = lambda large: None,
    ):
        self.submit = self.submit_one = answer
        self._on_begin = on_begin

    async def submit_part(self, _: None, call: dict[str, Any]) -> dict[str, Any]:
        return await self.submit(call)

    def transaction(self, *, large: bool, **_: Any) -> AbstractAsyncContextManager[None]:
        self._on_begin(large)
        return nullcontext()


def send_to(store: FakeStore, items: Any, **options: Unpack[BatchOptions]) -> None:
    submission = Submission(task(), options)
    asyncio.run(send(cast(SubmissionStore, store), submission, items, tenant="default"))


def test_the_next_call_is_prepared_while_a_call_is_in_flight(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(submission, "CALL_JOBS", 2)
    monkeypatch.setattr(submission, "HANDFUL", 1)
    log: list[str] = []

    async def answer(call: dict[str, Any]) -> dict[str, Any]:
        log.append(f"made {call['items']}")
        for _ in range(10):
            await asyncio.sleep(0)
        log.append(f"answered {call['items']}")
        return {"batch_id": "b"}

    items = (log.append(f"read {n}") or n for n in range(6))
    send_to(FakeStore(answer), items)
    answered = log.index("answered [2,3]")
    assert log.index("made [2,3]") < log.index("read 5") < answered
    assert answered < log.index("made [4,5]") < log.index("answered [4,5]")


def test_an_invalid_item_cancels_the_call_in_flight(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(submission, "CALL_JOBS", 2)
    monkeypatch.setattr(submission, "HANDFUL", 1)
    log: list[str] = []

    async def answer(call: dict[str, Any]) -> dict[str, Any]:
        try:
            if call["items"] != "[0,1]":
                await asyncio.Event().wait()
        finally:
            log.append(f"ended {call['items']}")
        return {"batch_id": "b"}

    with pytest.raises(InvalidPayload, match="item 5"):
        send_to(FakeStore(answer), [0, 1, 2, 3, 4, "five"])
    assert log == ["ended [0,1]", "ended [2,3]"]


def made_by_store(items: Any, **options: Unpack[BatchOptions]) -> list[tuple[str, dict[str, Any]]]:
    """Returns the calls that reach the store, each with the name of its function."""
    calls: list[tuple[str, dict[str, Any]]] = []

    async def submit(call: dict[str, Any]) -> dict[str, Any]:
        calls.append(("submit", call))
        return {"batch_id": "b"}

    async def submit_one(call: dict[str, Any]) -> dict[str, Any]:
        calls.append(("submit_one", call))
        return {"batch_id": "b"}

    store = FakeStore(submit)
    store.submit_one = submit_one
    send_to(store, items, **options)
    return calls


@pytest.mark.parametrize("items", [[7], (7,)])
def test_one_payload_has_a_function_of_its_own(items: Iterable[int]):
    ((function, call),) = made_by_store(items, tenant="ann", priority=3)
    assert function == "submit_one"
    assert (call["task"], call["payload"]) == ("double", "7")
    assert json.loads(call["options"]) == {"tenant": "ann", "priority": 3, "checked": True}


@pytest.mark.parametrize(
    ("items", "options"),
    [
        ([7, 8], {}),
        (iter([7]), {}),
        ([Item(7, priority=1)], {}),
        ([7], {"limit": 1}),
        ([7], {"on_finish": "double"}),
        ([7], {"notify": "a@example.org"}),
        ([7], {"idempotency_key": "k"}),
    ],
)
def test_all_other_batches_are_sent_to_submit(items: Iterable[Any], options: BatchOptions):
    assert [function for function, _ in made_by_store(items, **options)] == ["submit"]


def test_an_item_that_takes_many_steps_to_read_is_awaited():
    async def given_to(take: Callable[[Any], Any]) -> None:
        await asyncio.sleep(0)
        take(7)

    ((_, call),) = made_by_store([Slow(given_to)])
    assert call["items"] == "[7]"


def test_one_invalid_payload_is_refused_with_its_number():
    with pytest.raises(InvalidPayload) as refused:
        made_by_store(["seven"])
    assert refused.value.path == "item 0: $"


@pytest.mark.parametrize(("items", "large"), [(range(2), False), (range(3), True)])
def test_a_transaction_of_several_calls_is_marked_as_large(
    items: Iterable[int], large: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(submission, "CALL_JOBS", 2)
    begun: list[bool] = []

    async def answer(call: dict[str, Any]) -> dict[str, Any]:
        return {"batch_id": "b"}

    store = FakeStore(answer, begun.append)
    send_to(store, items, idempotency_key="k")
    assert begun == [large]


def test_a_large_body_is_read_after_the_transaction_begins(
    monkeypatch: pytest.MonkeyPatch,
):
    log: list[str] = []

    async def answer(call: dict[str, Any]) -> dict[str, Any]:
        return {"batch_id": "b"}

    async def read() -> AsyncIterator[list[int]]:
        log.append("read")
        yield [1]

    store = FakeStore(answer, lambda large: log.append("begun"))
    for large in (False, True):
        send_to(store, Blocks(read(), large=large), idempotency_key="k")
    assert log == ["read", "begun", "begun", "read"]


def test_payloads_of_unregistered_tasks_are_not_marked_as_checked():
    elsewhere = Registry().find("elsewhere")
    ((_, options),) = sent([1], to=elsewhere)
    assert "checked" not in options
    assert "checked" not in json.loads(enqueue_call(elsewhere, 1, {})["options"])
    assert "checked" in json.loads(enqueue_call(task(), 1, {})["options"])


# Items.


def test_an_item_carries_its_own_options():
    due = datetime(2030, 1, 1, tzinfo=UTC)
    item = Item(1, priority=5, run_at=due, dedup_key="d", cache_key="c")
    assert sent([item])[0][0] == [
        {
            "payload": 1,
            "priority": 5,
            "run_at": "2030-01-01T00:00:00+00:00",
            "dedup_key": "d",
            "cache_key": "c",
        }
    ]


def test_a_call_is_bare_unless_one_of_its_items_has_options(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(submission, "CALL_JOBS", 2)
    calls = sent([1, Item(2), 3, Item(4, priority=5), 5])
    assert [items for items, _ in calls] == [
        [1, 2],
        [{"payload": 3}, {"payload": 4, "priority": 5}],
        [5],
    ]
    assert ["bare" in options for _, options in calls] == [True, False, True]


def test_items_are_read_one_call_at_a_time():
    """An iterable may have more items than fit into memory."""
    read: list[int] = []
    under_way = Submission(task(), {})

    async def first_call() -> None:
        async with aclosing(under_way.calls(read.append(n) or n for n in range(10_000))) as calls:
            await anext(calls)

    asyncio.run(first_call())
    # One more item shows that this call is not the last.
    assert len(read) == submission.CALL_JOBS + 1


def test_an_item_of_a_keyed_task_carries_its_key():
    ((items, _),) = sent([7], to=task(key=lambda n: f"mod {n % 3}"))
    assert items == [{"payload": 7, "key": "mod 1"}]


def test_an_invalid_item_is_refused_with_its_number():
    with pytest.raises(InvalidPayload) as refused:
        sent([1, 2, "three"])
    assert refused.value.path == "item 2: $"


# Idempotency.


def test_the_digest_does_not_depend_on_the_size_of_calls():
    whole = digest(range(10))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(submission, "CALL_JOBS", 3)
        assert digest(range(10)) == whole


@pytest.mark.parametrize(
    ("items", "options"),
    [
        ([1, 3], {}),
        ([2, 1], {}),
        ([1], {}),
        ([1, 2], {"priority": 1}),
        ([12], {}),
        ([1, Item(2, priority=1)], {}),
    ],
)
def test_different_requests_have_different_digests(items: list[Any], options: dict[str, Any]):
    assert digest(items, **options) != digest([1, 2])


def test_a_repeated_request_sends_only_its_first_call(monkeypatch: pytest.MonkeyPatch):
    earlier = digest(range(9))
    monkeypatch.setattr(submission, "CALL_JOBS", 2)
    under_way = Submission(task(), {"idempotency_key": "k"})
    (first,) = made(under_way, range(9), {"batch_id": "b", "digest": earlier})
    assert json.loads(first["items"]) == [0, 1]
    assert (under_way.batch_id, under_way.is_repeated) == ("b", True)


def test_a_repeated_request_that_differs_in_its_last_item_is_refused(
    monkeypatch: pytest.MonkeyPatch,
):
    earlier = digest(range(9))
    monkeypatch.setattr(submission, "CALL_JOBS", 2)
    under_way = Submission(task(), {"idempotency_key": "k"})
    with pytest.raises(IdempotencyConflict, match='The idempotency key "k" was used'):
        made(under_way, [*range(8), 99], {"batch_id": "b", "digest": earlier})


def test_the_digest_of_a_single_job_covers_payload_and_options():
    def digest_of(payload: int, **options: Any) -> str:
        request: Any = {"idempotency_key": "k", **options}
        call = enqueue_call(task(), payload, request)
        return json.loads(call["options"])["digest"]

    assert digest_of(1) == digest_of(1)
    assert (
        len({digest_of(1), digest_of(2), digest_of(1, priority=1), digest_of(1, tenant="t")}) == 4
    )


# Options.


def test_options_are_written_in_the_format_of_the_database():
    assert written_options(
        {
            "tenant": "ann",
            "priority": -5,
            "delay": timedelta(minutes=1),
            "expires_in": 3600,
            "labels": {"team": "a"},
            "limit": 3,
            "on_finish": task(),
            "cache_key": None,
        }
    ) == {
        "tenant": "ann",
        "priority": -5,
        "delay": 60.0,
        "expires_in": 3600,
        "labels": {"team": "a"},
        "limit": 3,
        "on_finish": "double",
    }


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"delay": 1, "run_at": datetime.now(UTC)}, "Give either delay or run_at"),
        (
            {"run_at": datetime(2030, 1, 1)},
            "run_at needs a time zone: 2030-01-01T00:00:00 has none",
        ),
        ({"run_at": "tomorrow"}, "run_at must be a datetime, not 'tomorrow'"),
        ({"delay": -1}, "delay must be from 0 seconds to ten years, not -1"),
        ({"delay": float("nan")}, "delay must be from 0 seconds to ten years, not nan"),
        ({"delay": "soon"}, "delay must be from 0 seconds to ten years, not 'soon'"),
        ({"expires_in": timedelta(days=4000)}, "expires_in must be from 0 seconds to ten years"),
        ({"priority": 32_768}, "priority must be from -32768 to 32767, not 32768"),
        ({"priority": 1.5}, "priority must be from -32768 to 32767, not 1.5"),
        ({"priority": 1.0}, "priority must be from -32768 to 32767, not 1.0"),
        ({"priority": "high"}, "priority must be from -32768 to 32767, not 'high'"),
        ({"tenant": ""}, "tenant must be 1 to 500 characters"),
        ({"tenant": 7}, "tenant must be 1 to 500 characters"),
        ({"idempotency_key": "x" * 501}, "idempotency_key must be 1 to 500 characters"),
        ({"dedup_key": "\0"}, "dedup_key must be 1 to 500 characters"),
        ({"cache_key": "\ud800"}, "cache_key must be 1 to 500 characters"),
        ({"labels": ["a"]}, "labels must be a mapping of names to values, not"),
        ({"labels": {"a": 1}}, "A label must be 1 to 500 characters"),
        ({"on_finish": 7}, "on_finish must be a task or the name of a task, not 7"),
        ({"colour": "red"}, 'There is no option "colour"'),
    ],
)
def test_an_invalid_option_is_refused(options: dict[str, Any], sentence: str):
    with pytest.raises(InvalidInput, match=sentence):
        written_options(options)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_a_batch_with_an_invalid_limit_is_refused(limit: Any):
    with pytest.raises(
        InvalidLimit, match="The limit of a batch must be a whole number of at least 1"
    ):
        written_options({"limit": limit})
