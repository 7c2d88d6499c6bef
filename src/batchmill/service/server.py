"""Running the service under uvicorn."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from batchmill.config import ServiceSettings
from batchmill.errors import ConfigurationError
from batchmill.mill import Mill
from batchmill.service.app import create_app
from batchmill.service.caller import is_loopback
from batchmill.worker.worker import WorkerOptions

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
    """Until SIGTERM or Ctrl-C, and then until what is under way has ended, but no longer than the
    grace period."""
    app = create_app(mill, settings=settings, worker=worker)
    with listening(host, port) as at:
        # Not left to uvicorn, which would answer what goes wrong here with a stack trace.
        async with app.router.lifespan_context(app):
            if not await mill.keys.all():
                require_loopback(host)
                log.warning("There is no key yet, so only this machine is served.")
            log.info("Serving on http://%s:%s: see /docs there.", host, at.getsockname()[1])
            await Server(app, grace).serve(sockets=[at])


class Server(uvicorn.Server):
    def __init__(self, app: FastAPI, grace: float):
        self._app = app
        config = uvicorn.Config(
            app,
            # Whom to believe about addresses is a setting of our own.
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=int(grace) + 1,
            log_config=None,
            access_log=False,
            lifespan="off",
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal ends it in order, a second one waits for no request. Uvicorn itself
        would raise the signal again when all is done, as if that had failed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        self._app.state.batchmill.stop()
        self.force_exit = self.should_exit
        self.should_exit = True


def listening(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        is_unknown = isinstance(error, socket.gaierror)
        reason = error.strerror if is_unknown else os.strerror(error.errno or 0)
        raise ConfigurationError(f"The service cannot be had on {host}:{port}: {reason}.") from None


def require_loopback(host: str) -> None:
    if not is_loopback(host):
        raise ConfigurationError(
            f"Without any key only this machine is served, not {host}: make one with "
            "`batchmill keys create`, or leave --host out."
        )
