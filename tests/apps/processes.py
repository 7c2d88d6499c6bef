"""Applications as server processes on the loopback interface, with a worker."""

from collections.abc import Mapping
from typing import Any

import httpx

from tests.streams.processes import ServerProcess

TIMEOUT = 60


class Client:
    """A client for the API of an application. All its requests have the `headers`."""

    port: int
    headers: Mapping[str, str] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(
        self, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> httpx.AsyncClient:
        sent = {**self.headers, **(headers or {})}
        return httpx.AsyncClient(base_url=self.url, timeout=TIMEOUT, headers=sent, **options)

    async def get(self, path: str) -> Any:
        async with self.client() as client:
            return (await client.get(path)).json()

    async def post(self, path: str, body: Any = None) -> httpx.Response:
        async with self.client() as client:
            return await client.post(path, json=body)


class Application(ServerProcess, Client):
    """The server process of the application `name`, and a client for its API."""

    name: str

    def __init__(self, dsn: str, environment: dict[str, str] | None = None, *, grace: int = 10):
        super().__init__(dsn, environment)
        self._grace = grace

    def _command(self) -> list[str]:
        """The command of `make serve`."""
        options = [f"--port={self.port}", f"--grace={self._grace}"]
        return ["batchmill", "--app", f"apps.{self.name}.app:app", "serve", *options]
