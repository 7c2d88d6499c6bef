"""Requests that wait for each other hold no connection, so they do not delay others."""

import asyncio

import pytest

from batchmill import Mill
from batchmill.store import idempotency
from tests.library.tools import one
from tests.service.tools import Tenant, problem

AT_ONCE = 30
BODY = {"task": "double", "items": [1, 2]}
KEY = {"Idempotency-Key": "once"}
WAITING = """select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and wait_event_type = 'Lock'"""


async def test_submits_with_one_idempotency_key_wait_without_a_connection(
    ada: Tenant, bob: Tenant
) -> None:
    async with Mill(ada.service.dsn) as mill:
        elsewhere = mill.as_tenant(ada.name)
        async with elsewhere.transaction(idempotency_key="once") as conn:
            first = await elsewhere.submit(
                "double", [1, 2], idempotency_key="once", connection=conn
            )
            again = asyncio.gather(
                *(ada.client.post("/v1/batches", json=BODY, headers=KEY) for _ in range(AT_ONCE))
            )
            for who in (bob, ada) * 10:
                assert (await who.client.get("/v1/batches")).json()["batches"] == []
                assert one(ada.service.sql, WAITING) == (0,)
        answers = await again
    assert {(answer.status_code, answer.json()["id"]) for answer in answers} == {
        (202, str(first.id))
    }


async def test_concurrent_submits_with_one_key_and_another_body_are_refused(ada: Tenant) -> None:
    bodies = [BODY | {"items": [n % 2]} for n in range(AT_ONCE)]
    answers = await asyncio.gather(
        *(ada.client.post("/v1/batches", json=body, headers=KEY) for body in bodies)
    )
    accepted = [answer for answer in answers if answer.status_code == 202]
    refused = [answer for answer in answers if answer.status_code != 202]
    assert (len(accepted), len({answer.json()["id"] for answer in accepted})) == (AT_ONCE // 2, 1)
    assert {problem(answer) for answer in refused} == {(422, "idempotency_conflict")}


async def test_a_submit_whose_key_stays_in_use_gets_409_with_retry_after(
    ada: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ada.service.sql.transaction(), monkeypatch.context() as patch:
        patch.setattr(idempotency, "WAIT_SECONDS", 0.05)
        one(ada.service.sql, "select batchmill.hold_request(%s, 'once')", ada.name)
        answer = await ada.client.post("/v1/batches", json=BODY, headers=KEY)
    assert problem(answer) == (409, "request_in_progress")
    assert answer.headers["Retry-After"] == "1"
    assert (await ada.client.post("/v1/batches", json=BODY, headers=KEY)).status_code == 202
