"""The HTTP service, with a worker inside."""

from typing import Annotated, Any

import typer

from batchmill.cli.logs import LogLevel, log_to_stderr
from batchmill.cli.session import Session
from batchmill.config import ServiceSettings
from batchmill.errors import ConfigurationError
from batchmill.worker.worker import WorkerOptions

DEFAULTS = WorkerOptions()


async def serve(
    session: Session,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="The port to listen on; 0 selects a free port.")
    ] = 8200,
    worker: Annotated[bool, typer.Option(help="Also run a worker in this process.")] = True,
    concurrency: Annotated[
        int, typer.Option(help="How many jobs may run at the same time.")
    ] = DEFAULTS.concurrency,
    grace: Annotated[
        float, typer.Option(help="Seconds that requests and jobs have to finish after a stop.")
    ] = DEFAULTS.grace,
    log_level: Annotated[LogLevel, typer.Option(help="The lowest level to log.")] = LogLevel.INFO,
) -> None:
    """Serve your mill, or an application with service_router (--app), until SIGTERM or Ctrl-C.

    An application starts its own worker, if it has one."""
    try:
        from batchmill.service import server
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"The service needs the package {error.name}: run pip install 'batchmill[service]'."
        ) from None
    log_to_stderr(log_level)
    common: dict[str, Any] = {
        "host": host,
        "port": port,
        "settings": ServiceSettings.read(),
        "grace": grace,
    }
    if server.is_application(session.served):
        await server.serve_app(session.served, **common)
        return
    options = WorkerOptions(concurrency=concurrency, grace=grace) if worker else None
    await server.serve(session.application, worker=options, **common)
