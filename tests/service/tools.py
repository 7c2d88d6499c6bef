"""Tools for the tests of the service."""

import hashlib
import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
from fastapi import FastAPI

from batchmill.domain.key import Key

ALL = ("read", "submit", "admin")
UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"
ROWS = """select (select count(*) from batchmill.batches where tenant = %(tenant)s),
    (select count(*) from batchmill.jobs where tenant = %(tenant)s),
    (select count(*) from batchmill.requests where tenant = %(tenant)s),
    (select count(*) from batchmill.artifacts where tenant = %(tenant)s),
    (select coalesce(sum(stored_bytes), 0)::int from batchmill.usage where tenant = %(tenant)s)"""

numbers = itertools.count(1)


@dataclass(frozen=True)
class SharedService:
    url: str
    dsn: str
    sql: psycopg.Connection[Any]
    files: Path
    app: FastAPI

    def key(
        self, tenant: str, scopes: Iterable[str] = ALL, *, expires_in: str | None = None
    ) -> str:
        return make_key(self.sql, tenant, scopes, expires_in=expires_in)

    @asynccontextmanager
    async def tenant(self, name: str | None = None) -> AsyncIterator["Tenant"]:
        """Creates a client. Without a name the tenant is a new one."""
        name = name or f"tenant-{next(numbers)}"
        async with self.client(self.key(name)) as client:
            yield Tenant(name, client, self)

    def client(self, key: str | None = None, **more: Any) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=60, **more)


@dataclass(frozen=True)
class Tenant:
    """A client of one tenant, with every scope."""

    name: str
    client: httpx.AsyncClient
    service: SharedService

    @property
    def has_nothing(self) -> bool:
        """Whether it has no row and no file, not even one that is to be removed later."""
        counts = self.service.sql.execute(ROWS.encode(), {"tenant": self.name}).fetchone()
        return counts == (0, 0, 0, 0, 0) and not self.files

    @property
    def files(self) -> list[Path]:
        """All files in its folder of the storage."""
        folder = hashlib.sha256(self.name.encode()).hexdigest()[:16]
        return [path for path in (self.service.files / folder).rglob("*") if path.is_file()]

    def quota(self, **bounds: int) -> None:
        names = ", ".join(bounds)
        values = ", ".join("%s" for _ in bounds)
        self.service.sql.execute(
            f"insert into batchmill.quotas (tenant, {names}) values (%s, {values})".encode(),
            [self.name, *bounds.values()],
        )

    async def batch(self, task: str = "double", items: Iterable[Any] = (1,), **more: Any) -> Any:
        return await submitted(self.client, task, list(items), **more)

    async def file(self, content: bytes = b"text", name: str = "a.txt") -> Any:
        answer = await self.client.put("/v1/artifacts", params={"name": name}, content=content)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def finished(self, batch: Any) -> list[str]:
        return await finished(self.client, batch)


def make_key(
    sql: psycopg.Connection[Any],
    tenant: str,
    scopes: Iterable[str] = ALL,
    *,
    expires_in: str | None = None,
) -> str:
    """Creates a key in the same way as `batchmill keys create`."""
    key = Key.new()
    sql.execute(
        "insert into batchmill.api_keys (id, tenant, name, digest, scopes, created_at, expires_at) "
        "values (%s, %s, 'test', %s, %s, now(), now() + %s::interval)",
        [key.id, tenant, key.digest, list(scopes), expires_in],
    )
    return key.text


async def submitted(client: httpx.AsyncClient, task: str, items: list[Any], **more: Any) -> Any:
    answer = await client.post("/v1/batches", json={"task": task, "items": items, **more})
    assert answer.status_code == 202, answer.text
    return answer.json()


async def finished(client: httpx.AsyncClient, batch: Any) -> list[str]:
    """Follows a batch to its end. Returns the types of its events."""
    types = []
    async with client.stream("GET", batch["links"]["events"]) as stream:
        assert stream.status_code == 200
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                types.append(line.removeprefix("event: "))
    return types


def problem(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["detail"] and body["title"]
    return answer.status_code, body["code"]
