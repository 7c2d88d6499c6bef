"""The JSON body of a submit is read item by item."""

import asyncio
import io
import json
import random
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from starlette.requests import ClientDisconnect

from batchmill.domain.payload import LIMIT
from batchmill.errors import InvalidInput
from batchmill.service import newbatch
from batchmill.service.faults import faults_of_job
from batchmill.service.json import BLOCK, parsed
from batchmill.service.newbatch import BLOCK_CHARACTERS, BLOCK_ITEMS, NewBatchBody
from batchmill.service.problems import BadRequest, TooLarge
from batchmill.service.reading import Reading
from batchmill.service.requests import MOST_OPTIONS
from batchmill.submission import Item, Slow

VALUES = [
    None, True, 0, -1.5e-7, 10**20, "", "x", "ä\n\"\\", "\U0001f3ca", [], {}, [[]], {"a": [1]},
    "\\ud800", "\\\U0001f3ca", '"[', "x" * 100_000, [{"a": "ä" * 50_000}], list(range(30_000)), "\U0001f3ca" * 70_000,
]  # fmt: skip


def body_of(text: str | bytes, reading: Reading | None = None) -> NewBatchBody:
    service: Any = SimpleNamespace(mill=SimpleNamespace(tasks={}), reading=reading or Reading())
    file = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    return NewBatchBody(file, service, "ada")


async def read(body: NewBatchBody) -> list[Any]:
    values: list[Any] = []
    async for block in body.items():
        for each in block:
            values.append(await value_of(each))
    return values


async def value_of(item: Any) -> Any:
    return await item.given_to(lambda value: value) if isinstance(item, Slow) else item


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii", [True, False])
async def test_items_are_read_correctly(indent: int | None, ascii: bool) -> None:
    chance = random.Random(7)
    items = [chance.choice(VALUES) for _ in range(80)] + VALUES
    given = {"labels": {"a": "b"}, "items": items, "task": "keep", "priority": 3}
    body = body_of(json.dumps(given, indent=indent, ensure_ascii=ascii))
    options = await body.check()
    assert (options.task, options.priority, options.labels) == ("keep", 3, {"a": "b"})
    for _ in range(2):
        assert await read(body) == items


async def test_jobs_are_read_with_their_options() -> None:
    jobs = [{"payload": n, "priority": n} for n in range(500)] + [{"payload": "x" * 200_000}]
    body = body_of(json.dumps({"task": "keep", "jobs": jobs}))
    await body.check()
    items = await read(body)
    assert all(isinstance(each, Item) for each in items)
    assert [(each.payload, each.priority) for each in items] == [
        (job["payload"], job.get("priority")) for job in jobs
    ]


async def test_items_are_read_correctly_at_any_block_boundary() -> None:
    """A block can end anywhere: inside a number, a text, a character or a name."""
    item = '[12345.5e3,true,{"nä\\u00e4me":"x\\n"},-0.1]'
    for shift in range(60):
        padding = " " * (BLOCK - 100 + shift)
        text = f'{{"task":"keep",{padding}"items":[{",".join([item] * 50)}]}}'
        body = body_of(text)
        await body.check()
        assert await read(body) == json.loads(text)["items"]


@pytest.mark.parametrize("tail", ["", "]", "]}x", "] }{", ",]}", "x]}", "]]", '],"task":"again"}'])
@pytest.mark.parametrize("count", [1, 100_000])
async def test_the_check_finds_an_error_at_the_end_of_the_body(tail: str, count: int) -> None:
    with pytest.raises(BadRequest):
        await body_of('{"task":"keep","items":[' + ",".join(["1"] * count) + tail).check()


async def test_other_tasks_on_the_event_loop_run_during_the_check() -> None:
    count = 30_000
    body = body_of('{"task":"keep","items":[' + ",".join(["[]"] * count) + "]}")
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(other())
    await body.check()
    assert turns >= count // BLOCK_ITEMS
    others.cancel()


async def test_blocks_are_small_and_long_items_are_read_one_by_one() -> None:
    items = [[]] * 2_000 + ["x" * 5_000] * 20 + [[[]] * 100_000] + [[]] * 10 + [[[]] * 4_000] * 3
    body = body_of(json.dumps({"task": "keep", "items": items}))
    await body.check()
    slow = 0
    async for block in body.items():
        short = [each for each in block if not isinstance(each, Slow)]
        slow += len(block) - len(short)
        for each in block:
            await value_of(each)
        assert len(short) <= BLOCK_ITEMS
        assert len(json.dumps(short)) <= 2 * BLOCK_CHARACTERS
    assert slow == 4


async def test_reading_stops_when_the_client_has_disconnected() -> None:
    checks = iter([False, False, True])

    async def is_gone() -> bool:
        return next(checks)

    body = body_of('{"task":"keep","items":[' + "[]," * 1_000_000 + "[]]}")
    body._is_gone = is_gone
    with pytest.raises(ClientDisconnect):
        await body.check()
    assert body._file.tell() <= 4 * BLOCK_CHARACTERS


async def test_an_item_is_limited_to_twice_the_payload_limit() -> None:
    for text in ('"' + "x" * 3 * LIMIT + '"', "[" + "[]," * LIMIT + "[]]"):
        with pytest.raises(TooLarge):
            await body_of('{"task":"keep","items":[' + text + "]}").check()


async def test_the_number_of_items_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newbatch, "MOST_JOBS", 1_000)
    await body_of('{"task":"keep","items":[' + ",".join(["1"] * 1_000) + "]}").check()
    with pytest.raises(InvalidInput, match="at most 1,000"):
        await body_of('{"task":"keep","items":[' + ",".join(["1"] * 1_001) + "]}").check()


async def test_an_unknown_name_is_refused_before_its_value_is_read() -> None:
    for value in ("[" + "[]," * 1_000_000 + "[]]", "[" * 1_000_000):
        body = body_of('{"task":"keep","x":' + value + ',"items":[1]}')
        with pytest.raises(RequestValidationError) as refused:
            await body.check()
        assert [each["loc"] for each in refused.value.errors()] == [("body", "x")]
        assert body._file.tell() <= 2 * BLOCK
    with pytest.raises(TooLarge):
        await body_of(json.dumps({"x" * 2_000: 1})).check()


async def test_the_total_size_of_options_is_limited() -> None:
    most = MOST_OPTIONS // 2 - 1_000
    fits = {"task": "x" * most, "labels": {"a": "x" * most}, "items": [1]}
    with pytest.raises(RequestValidationError):
        await body_of(json.dumps(fits)).check()
    with pytest.raises(TooLarge):
        await body_of(json.dumps(fits | {"notify": ["x" * 3_000] * 10})).check()


async def test_options_can_be_longer_than_a_block() -> None:
    labels = {str(n): "x" * 400 for n in range(60)}
    options = await body_of(json.dumps({"task": "keep", "labels": labels, "items": [1]})).check()
    assert options.labels == labels


async def test_many_invalid_labels_cause_at_most_a_hundred_faults() -> None:
    labels = {str(n): n for n in range(5_000)}
    with pytest.raises(RequestValidationError) as refused:
        await body_of(json.dumps({"task": "keep", "labels": labels, "items": [1]})).check()
    assert len(refused.value.errors()) == 100


async def test_many_unknown_names_in_a_job_cause_at_most_a_hundred_faults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Pydantic has one error for each name, so its errors must not be converted.
    monkeypatch.setattr("batchmill.service.faults._faults", None)
    job = {f"{n:0200}": 1 for n in range(10_000)}
    faults = faults_of_job(job, 7)
    assert len(faults) == 100
    assert all(len(str(each)) < 300 and each["loc"][:3] == ("body", "jobs", 7) for each in faults)
    with pytest.raises(RequestValidationError) as refused:
        await body_of(json.dumps({"task": "keep", "jobs": [job] * 3})).check()
    assert len(refused.value.errors()) == 100


async def test_whitespace_is_read_in_steps_and_limited() -> None:
    items = (",\n" + " " * 20_000).join(["1"] * 300)
    body = body_of('{"task":"keep","items":[' + items + "]}")
    await body.check()
    assert max([len(block) async for block in body.items()]) <= 2
    with pytest.raises(BadRequest, match="space"):
        await body_of('{"task":"keep",' + " " * 100_000 + '"items":[1]}').check()


async def test_reading_stops_at_the_first_json_error() -> None:
    body = body_of('{"task":"keep","items":[' + "[" * 9 + "[],x" + ",[]" * 3_000_000 + "]}")
    with pytest.raises(BadRequest):
        await body.check()
    assert body._file.tell() <= 2 * BLOCK


async def test_a_batch_with_both_items_and_jobs_is_refused() -> None:
    with pytest.raises(RequestValidationError):
        await body_of('{"task":"keep","items":[1],"jobs":[{"payload":1}]}').check()


@pytest.mark.parametrize(
    "text",
    ['"\\u0000"', '{"\\u0000":1}', '"\\ud800"', "NaN", "1e999", '{"a":1,"a":2}', "[" * 120 + "]" * 120,
     "9" * 5_000, '"\n"', '"\\x"', "01", "tru", '["\\ud83c","\\udfca"]', '"\\\\\\ud800"',
     '"\\udfca\\ud83c"', '"\\ud83c\\\\\\udfca"'],
)  # fmt: skip
async def test_items_follow_the_same_json_rules_as_bodies(text: str) -> None:
    with pytest.raises(BadRequest):
        parsed(text.encode())
    for before in ("", "1," * 50_000):
        with pytest.raises(BadRequest):
            await body_of(f'{{"task":"keep","items":[{before}{text}]}}').check()
