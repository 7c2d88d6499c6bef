"""Requests with names that are never answered: they hold no connection to the database meanwhile."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.library.tools import until
from tests.service.tools import House, Tenant

STUCK = "never-answered.test"
HELD = """select count(*) from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%'"""


class NameServer:
    """Stands before the system's lookup: whoever asks for a stuck name waits until the end."""

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
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    names = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", names)
    yield names
    names.released.set()


def held(house: House) -> int:
    found = house.sql.execute(HELD.encode()).fetchone()
    assert found is not None
    return found[0]


def urls(count: int) -> list[str]:
    return [f"https://{n}.{STUCK}/hook" for n in range(count)]


async def test_a_submit_that_looks_names_up_holds_no_connection(
    house: House, ada: Tenant, names: NameServer
):
    body = {"task": "double", "items": [1], "notify": urls(20)}
    submits = [asyncio.create_task(ada.client.post("/v1/batches", json=body)) for _ in range(3)]
    await until(lambda: names.asked)
    assert held(house) == 0
    names.released.set()
    assert [answer.status_code for answer in await asyncio.gather(*submits)] == [202] * 3


async def test_stuck_names_of_one_tenant_delay_neither_files_nor_names_of_others(
    house: House, ada: Tenant, bob: Tenant, names: NameServer
):
    saves = [
        asyncio.create_task(bob.client.post("/v1/webhooks", json={"url": url})) for url in urls(60)
    ]
    await until(lambda: names.asked)
    assert (await ada.file(b"x" * 200_000))["size"] == 200_000
    refused = await ada.client.post("/v1/webhooks", json={"url": "http://localhost/"})
    assert refused.status_code == 422
    assert not any(save.done() for save in saves)
    names.released.set()
    await asyncio.gather(*saves)


async def test_each_name_of_a_request_is_looked_up_once(ada: Tenant, names: NameServer):
    names.released.set()
    targets = [f"https://{STUCK}/{n}" for n in range(20)]
    body = {"task": "double", "items": [1], "notify": targets}
    assert (await ada.client.post("/v1/batches", json=body)).status_code == 202
    assert names.asked.count(STUCK) == 1
