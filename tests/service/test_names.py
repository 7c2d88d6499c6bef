"""Requests with host names that DNS never resolves hold no connection to the database."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.library.tools import until
from tests.service.tools import SharedService, Tenant

STUCK = "never-answered.test"
HELD = """select count(*) from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%'"""


class Resolver:
    """Replaces `socket.getaddrinfo`. Lookups of stuck names block until `released` is set."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.asked: list[str] = []
        self._ask = socket.getaddrinfo

    def __call__(self, host: Any, *args: Any, **kwargs: Any) -> Any:
        if not str(host).endswith(STUCK):
            return self._ask(host, *args, **kwargs)
        self.asked.append(str(host))
        self.released.wait()
        raise OSError("no such name")


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    resolver = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    yield resolver
    resolver.released.set()


def held(service: SharedService) -> int:
    row = service.sql.execute(HELD.encode()).fetchone()
    assert row is not None
    return row[0]


def urls(count: int) -> list[str]:
    return [f"https://{n}.{STUCK}/hook" for n in range(count)]


async def test_a_submit_holds_no_connection_while_it_resolves_names(
    service: SharedService, ada: Tenant, resolver: Resolver
):
    body = {"task": "double", "items": [1], "notify": urls(20)}
    submits = [asyncio.create_task(ada.client.post("/v1/batches", json=body)) for _ in range(3)]
    await until(lambda: resolver.asked)
    # The names never resolve, so a connection that a submit holds would be held for ever.
    await until(lambda: held(service) == 0)
    assert not any(submit.done() for submit in submits)
    resolver.released.set()
    assert [answer.status_code for answer in await asyncio.gather(*submits)] == [202] * 3


async def test_slow_lookups_of_one_tenant_do_not_delay_files_or_lookups_of_others(
    service: SharedService, ada: Tenant, bob: Tenant, resolver: Resolver
):
    saves = [
        asyncio.create_task(bob.client.post("/v1/webhooks", json={"url": url})) for url in urls(60)
    ]
    await until(lambda: resolver.asked)
    assert (await ada.file(b"x" * 200_000))["size"] == 200_000
    refused = await ada.client.post("/v1/webhooks", json={"url": "http://localhost/"})
    assert refused.status_code == 422
    assert not any(save.done() for save in saves)
    resolver.released.set()
    await asyncio.gather(*saves)


async def test_each_host_of_a_request_is_resolved_once(ada: Tenant, resolver: Resolver):
    resolver.released.set()
    targets = [f"https://{STUCK}/{n}" for n in range(20)]
    body = {"task": "double", "items": [1], "notify": targets}
    assert (await ada.client.post("/v1/batches", json=body)).status_code == 202
    assert resolver.asked.count(STUCK) == 1
