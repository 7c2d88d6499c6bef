"""State that the routes share: the mill, the settings, and the stop signal."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Annotated, Any

from fastapi import Depends, Request

from batchmill.config import ServiceSettings
from batchmill.errors import ConfigurationError
from batchmill.mill import Mill
from batchmill.service.addresses import Proxies
from batchmill.service.guesses import Guesses
from batchmill.service.reading import Reading
from batchmill.service.slowing import Slowing
from batchmill.service.sse import StreamOptions, Streams
from batchmill.service.stopping import called_on_signals
from batchmill.service.streaming import DownloadOptions, Downloads
from batchmill.store.database import Timeouts
from batchmill.worker.options import WorkerOptions
from batchmill.worker.worker import Worker

log = logging.getLogger("batchmill.service")

PROXY_LINE_SECONDS = 3_600.0


class Service:
    def __init__(self, mill: Mill, settings: ServiceSettings, worker: WorkerOptions | None):
        self.mill = mill
        self.settings = settings
        self.proxies = Proxies(settings.trusted_proxies)
        self._proxy_lines = Slowing(tries=1, seconds=PROXY_LINE_SECONDS)
        self.stopping = asyncio.Event()
        options = StreamOptions(
            keep_alive=settings.keep_alive,
            patience=settings.patience,
            per_process=settings.streams_per_process,
            per_tenant=settings.streams_per_tenant,
        )
        self.streams = Streams(mill, self.stopping, options)
        self.downloads = Downloads(
            DownloadOptions(
                patience=settings.patience,
                per_process=settings.downloads_per_process,
                per_tenant=settings.downloads_per_tenant,
            )
        )
        self.timeouts = Timeouts(settings.statement_timeout, settings.long_statement_timeout)
        self.guesses = Guesses(settings.wrong_keys_per_minute)
        self.reading = Reading()
        self.metrics = mill.metrics if find_spec("prometheus_client") else None
        if self.metrics is not None:
            self.metrics.meter.stream_clients = lambda: self.streams.clients
        self._options = worker
        self._workers: set[Worker] = set()

    @asynccontextmanager
    async def lifespan(self, app: Any) -> AsyncIterator[None]:
        """The lifespan of the application with the routes. They get this object from its state."""
        app.state.batchmill = self
        self.stopping.clear()
        async with self._running():
            await self._require_tenants()
            await self.mill.register_tasks()
            async with self.streams:
                with called_on_signals(self.stop):
                    yield

    def warn_of_unknown_proxy(self, address: str) -> None:
        if self._proxy_lines.allow("") is None:
            log.warning(
                "%s sends X-Forwarded-For but is not in BATCHMILL_TRUSTED_PROXIES, so all of "
                "its clients count as one address. If it is your proxy, add it there.",
                address,
            )

    def stop(self) -> None:
        """Ends the streams and drains the worker. Other requests still get an answer."""
        self.stopping.set()
        for worker in self._workers:
            worker.stop()

    async def run_due_jobs(self, at_most: float, grace: float) -> bool:
        """Runs one more worker until no job is due. Returns whether no job was due in the end."""
        worker = self.mill.worker(replace(self._options or WorkerOptions(), grace=grace))
        self._workers.add(worker)
        try:
            return await worker.run_until_empty(at_most)
        finally:
            self._workers.remove(worker)

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        if self._options is None:
            async with self.mill:
                yield
        else:
            async with self.mill.running(self._options) as worker:
                self._workers.add(worker)
                yield

    async def _require_tenants(self) -> None:
        if not await self.mill.engine.store.keys.can_act_for_tenants():
            raise ConfigurationError(
                "The service needs the database role batchmill_tenant to act for tenants, but "
                "this user may not use it. Connect as the owner of the schema, let an "
                "administrator run `create role batchmill_tenant nologin; grant "
                "batchmill_tenant to <owner>`, then run `batchmill migrate up`."
            )


def of_request(request: Request) -> Service:
    return request.app.state.batchmill


AnyService = Annotated[Service, Depends(of_request)]


def streams_of(request: Request) -> Streams:
    return of_request(request).streams


EventStreams = Annotated[Streams, Depends(streams_of)]
