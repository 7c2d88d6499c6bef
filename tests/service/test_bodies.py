"""Unreadable and invalid bodies are refused with a message, and create nothing."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.service.operations import BODIES, GUARDED, Operation
from tests.service.tools import Tenant, problem

MOST = 200_000
WITH_JSON = [each for each in GUARDED if each.method in ("POST", "PUT") and each.path in BODIES]

UNREADABLE = {
    "empty": b"",
    "truncated": b'{"task": "double", "items": [1',
    "plain text": b"hello",
    "two values": b"{} {}",
    "not UTF-8": b'{"task": "\xff\xfe"}',
    "UTF-16": '{"task": "double", "items": [1]}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"task": "double", "items": [1]}',
    "NaN": b'{"task": "double", "items": [NaN]}',
    "infinity": b'{"task": "keep", "items": [-Infinity]}',
    "a number that is too large": b'{"task": "keep", "items": [1e999]}',
    "a number with too many digits": b'{"task": "keep", "items": [' + b"9" * 5_000 + b"]}",
    "a duplicate name": b'{"task": "double", "task": "keep", "items": [1]}',
    "a duplicate name in an item": b'{"task": "keep", "items": [{"a": 1, "a": 2}]}',
    "NUL": b'{"task": "keep", "items": ["\\u0000"]}',
    "NUL in a name": b'{"task": "keep", "items": [{"\\u0000": 1}]}',
    "a lone surrogate": b'{"task": "keep", "items": ["\\ud800"]}',
    "a lone surrogate in a name": b'{"\\udfff": 1, "task": "keep", "items": [1]}',
    "111 levels": b'{"task": "keep", "items": ' + b"[" * 110 + b"]" * 110 + b"}",
    "60,000 levels": b"[" * 60_000 + b"]" * 60_000,
    "20,000 nested objects": b'{"labels":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001,
}
INVALID: list[Any] = [
    1,
    [],
    {},
    "double",
    {"task": "double"},
    {"task": "double", "items": []},
    {"task": "double", "items": None},
    {"task": "double", "items": [1], "jobs": [{"payload": 1}]},
    {"task": "double", "items": "12"},
    {"task": "double", "items": {"a": 1}},
    {"task": "double", "items": [1], "unknown": 1},
    {"task": "double", "items": [1], "tenant": "bob"},
    {"task": "double", "items": [1], "priority": 99_999},
    {"task": "double", "items": [1], "priority": "high"},
    {"task": "double", "items": [1], "delay": -1},
    {"task": "double", "items": [1], "delay": 1e300},
    {"task": "double", "items": [1], "delay": 1, "run_at": "2030-01-01T00:00:00Z"},
    {"task": "double", "items": [1], "run_at": "2030-01-01T00:00:00"},
    {"task": "double", "items": [1], "run_at": "9999-12-31T23:59:59-14:00"},
    {"task": "double", "items": [1], "run_at": "0001-01-01T00:00:00+14:00"},
    {"task": "double", "jobs": [{"payload": 1, "run_at": "1969-12-31T23:59:59Z"}]},
    {"task": "double", "items": [1], "expires_in": -5},
    {"task": "double", "items": [1], "limit": 0},
    {"task": "double", "items": [1], "limit": 2**31},
    {"task": "double", "items": [1], "labels": {"": "x"}},
    {"task": "double", "items": [1], "labels": {"x": 1}},
    {"task": "double", "items": [1], "labels": ["x"]},
    {"task": "double", "items": [1], "labels": {str(n): "x" for n in range(65)}},
    {"task": "double", "items": [1], "notify": ["nobody"]},
    {"task": "double", "items": [1], "notify": ["http://127.0.0.1/"]},
    {"task": "double", "items": [1], "notify": ["a@example.com"] * 21},
    {"task": "double", "jobs": [{"payload": 1, "delay": "soon"}]},
    {"task": "double", "jobs": [{"payload": 1, "dedup_key": ""}]},
    {"task": "double", "jobs": [{"payload": 1, "cache_key": "x" * 501}]},
    {"task": "double", "jobs": [1]},
    {"task": "double", "items": [1, "x"]},
    {"task": "nothing", "items": [1]},
    {"task": "", "items": [1]},
    {"task": "a b", "items": [1]},
    {"task": 7, "items": [1]},
    {"task": "batchmill.webhook", "items": [{}]},
    {"task": "keep", "items": [[[[[]]]]] * 3 + [json.loads("[" * 102 + "]" * 102)]},
    {"task": "shout", "items": [{"file": {"artifact": "00000000-0000-4000-8000-000000000000"}}]},
    {"task": "double", "jobs": [{"wrong": n} for n in range(1_000)]},
]


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
async def test_an_unreadable_body_is_refused(body: bytes, ada: Tenant, operator: Tenant) -> None:
    for operation in WITH_JSON:
        answer = await send(operator if operation.needs_operator else ada, operation, body)
        assert answer.status_code in (400, 422), (str(operation), answer.text)
        problem(answer)
    assert problem(await send(ada, WITH_JSON[0], body)) == (400, "bad_request")
    assert ada.has_nothing


async def send(tenant: Tenant, operation: Operation, body: bytes) -> Any:
    arguments = operation.request(id="00000000-0000-4000-8000-000000000000", name="double")
    arguments.pop("json")
    return await tenant.client.request(
        **arguments, content=body, headers={"Content-Type": "application/json"}
    )


async def test_an_invalid_batch_is_refused(ada: Tenant) -> None:
    for body in INVALID:
        answer = await ada.client.post("/v1/batches", json=body)
        assert answer.status_code in (404, 422), (body, answer.text)
        problem(answer)
        assert len(answer.content) < 20_000
    assert ada.has_nothing


async def test_a_body_over_the_size_limit_is_refused(ada: Tenant) -> None:
    for size, status in ((MOST, 202), (MOST + 1, 413)):
        body = json.dumps({"task": "keep", "items": [""]}).encode()
        body = body.replace(b'""', b'"%b"' % (b"x" * (size - len(body))))
        assert len(body) == size
        answer = await ada.client.post("/v1/batches", content=body)
        assert answer.status_code == status
    assert problem(answer) == (413, "too_large")
    batches = (await ada.client.get("/v1/batches")).json()["batches"]
    assert [batch["total"] for batch in batches] == [1]


async def test_a_body_without_a_content_length_is_limited_too(ada: Tenant) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b'{"task": "keep", "items": ["'
        for _ in range(100):
            yield b"x" * 10_000

    answer = await ada.client.post("/v1/batches", content=endless())
    assert problem(answer) == (413, "too_large")
    assert ada.has_nothing


async def test_a_payload_with_a_hundred_levels_is_accepted(ada: Tenant) -> None:
    deep = json.loads("[" * 100 + "]" * 100)
    assert (await ada.batch("keep", [deep]))["total"] == 1


async def test_an_answer_lists_at_most_a_hundred_faults(ada: Tenant) -> None:
    body = {"task": "double", "jobs": [{"wrong": n} for n in range(5_000)]}
    answer = await ada.client.post("/v1/batches", json=body)
    assert problem(answer) == (422, "invalid_request")
    assert len(answer.json()["errors"]) == 100


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/limits/double", {"slots": 1}),
        ("/v1/limits/task:double", {}),
        ("/v1/limits/task:double", {"slots": -1}),
        ("/v1/limits/task:double", {"slots": "many"}),
        ("/v1/limits/task:double", {"rate": 0}),
        ("/v1/limits/task:double", {"rate": 1, "period": 0}),
        ("/v1/limits/task:double", {"rate": 1, "period": 1e300}),
        ("/v1/limits/task:double", {"slots": 1, "colour": "red"}),
        ("/v1/schedules/x", {"cron": "never", "task": "double", "payload": 1}),
        ("/v1/schedules/x", {"cron": "0 3 * * *", "task": "nothing"}),
        ("/v1/schedules/x", {"cron": "0 3 * * *", "task": "double", "payload": "x"}),
        (
            "/v1/schedules/x",
            {"cron": "0 3 * * *", "task": "double", "payload": 1, "timezone": "Mars"},
        ),
        (
            "/v1/schedules/x",
            {"cron": "0 3 * * *", "task": "double", "payload": 1, "timezone": "../x"},
        ),
        ("/v1/schedules/x", {"cron": "0 3 * * *", "task": "double", "payload": 1, "missed": "x"}),
        ("/v1/schedules/x", {"cron": "0 3 30 2 *", "task": "double", "payload": 1}),
        ("/v1/schedules/" + "x" * 501, {"cron": "0 3 * * *", "task": "double", "payload": 1}),
    ],
)
async def test_an_invalid_limit_or_schedule_is_refused(
    path: str, body: Any, operator: Tenant
) -> None:
    answer = await operator.client.put(path, json=body)
    assert answer.status_code == 422, answer.text
    problem(answer)
    kept = (await operator.client.get("/v1/schedules")).json()["schedules"]
    assert not [each for each in kept if each["name"].startswith("x")]


@pytest.mark.parametrize(
    "url",
    ["", "x", "ftp://example.com/", "http://127.0.0.1/", "https://[::1]/", "https://a@b@c/",
     "https://example.com:99999/", "https://" + "x" * 2_000, "https://10.0.0.1/\r\nX: y"],
)  # fmt: skip
async def test_a_webhook_with_an_invalid_or_private_url_is_refused(url: str, ada: Tenant) -> None:
    answer = await ada.client.post("/v1/webhooks", json={"url": url})
    assert answer.status_code == 422, answer.text
    problem(answer)
    assert (await ada.client.get("/v1/webhooks")).json()["webhooks"] == []
