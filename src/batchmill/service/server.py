"""Running the service under uvicorn."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeGuard

import uvicorn
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.types import Scope

from batchmill.config import ServiceSettings
from batchmill.errors import ConfigurationError
from batchmill.mill import Mill
from batchmill.service.addresses import counted_as, is_loopback
from batchmill.service.app import create_app
from batchmill.service.caller import address_of, peer_of, recognised
from batchmill.service.connections import ACCEPTED_AT_ONCE, Connections, raise_handle_limit
from batchmill.service.memory import give_back_large_blocks
from batchmill.service.protocol import BoundedProtocol
from batchmill.service.service import Service
from batchmill.service.steps import Account, Steps, Stepwise
from batchmill.worker.options import WorkerOptions

log = logging.getLogger("batchmill.service")

BACKLOG = 2_048


async def serve(
    mill: Mill,
    *,
    host: str,
    port: int,
    settings: ServiceSettings,
    worker: WorkerOptions | None,
    grace: float,
) -> None:
    """Serves a mill until SIGTERM or Ctrl-C. Then finishes the requests in flight, for at most the
    grace period."""
    app = create_app(mill, settings=settings, worker=worker)

    async def check() -> None:
        if not await mill.keys.all():
            require_loopback(host)
            if settings.require_key:
                log.warning(
                    "There are no keys, so all requests are refused. Run `batchmill keys create`."
                )
            else:
                log.warning("There are no keys, so only requests from this machine are accepted.")

    await serve_app(app, host=host, port=port, settings=settings, grace=grace, check=check)


async def serve_app(
    app: Starlette,
    *,
    host: str,
    port: int,
    settings: ServiceSettings,
    grace: float,
    check: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serves any application, with the same limits on connections as a mill's own service.

    Calls `check` after the application has started, before the first request.
    """
    raise_handle_limit()
    give_back_large_blocks()
    # A thread that computes, for example in a task, releases the GIL after a millisecond.
    sys.setswitchinterval(0.001)
    with bound(host, port) as at:
        # Run the lifespan here, because uvicorn would report an error in it with a stack trace.
        async with app.router.lifespan_context(app):
            if check is not None:
                await check()
            # These objects live as long as the process, so exclude them from garbage collection.
            gc.collect()
            gc.freeze()
            # A client may connect as soon as it reads the next line. Its request waits in the queue
            # of the socket until uvicorn accepts it; listening again only changes the queue's size.
            with explained(host, port):
                at.listen(BACKLOG)
            log.info("Serving on http://%s:%s", host, at.getsockname()[1])
            await Server(app, settings, grace).serve(sockets=[at])


def is_application(given: object) -> TypeGuard[Starlette]:
    return isinstance(given, Starlette)


def configuration(app: Starlette, settings: ServiceSettings, **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        sharing(app),
        http=partial(BoundedProtocol, connections=Connections(settings)),  # type: ignore[arg-type]
        ws="none",
        # The service has its own setting for trusted proxies.
        proxy_headers=False,
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,
        log_config=None,
        access_log=False,
        **more,
    )


def sharing(app: Starlette) -> Stepwise:
    """Wraps the application so that its callers share the event loop."""
    steps = Steps()

    def find(scope: Scope) -> Account:
        connection = HTTPConnection(scope)
        # An application without the service's routes has no keys and no trusted proxies.
        service: Service | None = getattr(app.state, "batchmill", None)
        if service is None:
            return steps.strangers.account(peer_of(connection))
        if (tenant := recognised(connection, service)) is not None:
            return steps.tenants.account(tenant)
        return steps.strangers.account(counted_as(address_of(connection, service)))

    return Stepwise(app, steps, find)


class Server(uvicorn.Server):
    def __init__(self, app: Starlette, settings: ServiceSettings, grace: float):
        self._app = app
        super().__init__(
            configuration(app, settings, lifespan="off", timeout_graceful_shutdown=int(grace) + 1)
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            # Asyncio uses one number for the kernel's backlog, which should be large, and for the
            # connections accepted at once, which must not use up all file handles.
            each.listen(BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal starts a graceful shutdown; a second one stops waiting for requests.
        Uvicorn itself would raise the signal again at the end, as if the shutdown had failed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        if (service := getattr(self._app.state, "batchmill", None)) is not None:
            service.stop()
        self.force_exit = self.should_exit
        self.should_exit = True


def bound(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen: clients cannot connect before the service is ready."""
    with explained(host, port):
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        at = socket.socket(family, kind, protocol)
        at.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        at.bind(address)
        return at


@contextmanager
def explained(host: str, port: int) -> Iterator[None]:
    """Reports an address that cannot be used. Two processes that start at the same time can both
    bind a port, but only one of them can listen on it."""
    try:
        yield
    except OSError as error:
        is_unknown = isinstance(error, socket.gaierror)
        reason = error.strerror if is_unknown else os.strerror(error.errno or 0)
        raise ConfigurationError(f"The service cannot listen on {host}:{port}: {reason}.") from None


def require_loopback(host: str) -> None:
    if not is_loopback(host):
        raise ConfigurationError(
            "Without keys, the service accepts only requests from this machine, so it does "
            f"not listen on {host}. Create a key with `batchmill keys create`, or omit --host."
        )
