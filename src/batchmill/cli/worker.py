import asyncio
import atexit
import logging
import os
import signal
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer

from batchmill.cli.logs import LogLevel, log_to_stderr
from batchmill.cli.parsing import parse_counts
from batchmill.cli.session import Session
from batchmill.telemetry import endpoint
from batchmill.worker.worker import Worker, WorkerOptions

log = logging.getLogger("batchmill.worker")

DEFAULTS = WorkerOptions()
STOPS = (signal.SIGTERM, signal.SIGINT)


async def worker(
    session: Session,
    concurrency: Annotated[int, typer.Option(help="Jobs at once.")] = DEFAULTS.concurrency,
    prefetch: Annotated[
        int, typer.Option(help="Jobs taken ahead, while they end within milliseconds.")
    ] = DEFAULTS.prefetch,
    pool: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK=N", help="Jobs of one task at once; give it for each task."),
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads for plain functions.")] = DEFAULTS.threads,
    processes: Annotated[
        int, typer.Option(help="Children for tasks with process=True.")
    ] = DEFAULTS.processes,
    lease: Annotated[
        float, typer.Option(help="Seconds of silence after which others take its jobs.")
    ] = DEFAULTS.lease,
    grace: Annotated[
        float, typer.Option(help="Seconds that running jobs have after a stop.")
    ] = DEFAULTS.grace,
    name: Annotated[
        str | None, typer.Option(help="What status calls it; else host:pid.", show_default=False)
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, help="Serve metrics for Prometheus here.", show_default=False
        ),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="The address of this machine that serves them.")
    ] = "127.0.0.1",
    log_level: Annotated[LogLevel, typer.Option(help="What to log.")] = LogLevel.INFO,
) -> None:
    """Run the tasks of your mill (--app) until SIGTERM or Ctrl-C; a second one ends it at once."""
    log_to_stderr(log_level)
    options = WorkerOptions(
        concurrency=concurrency,
        prefetch=prefetch,
        pools=parse_counts(pool or [], "pool"),
        threads=threads,
        processes=processes,
        lease=lease,
        grace=grace,
        name=name or DEFAULTS.name,
    )
    mill = session.application
    serving = nullcontext()
    if metrics_port is not None:
        serving = endpoint.serving(mill.metrics, metrics_host, metrics_port)
    running = mill.worker(options)
    stop_on_signals(running)
    async with mill, serving:
        await running.run()


def stop_on_signals(running: Worker) -> None:
    """The first signal drains the worker; the next one ends the process immediately."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        log.info("Stopping: running jobs may finish; a second signal ends them at once.")
        running.stop()
        for number in STOPS:
            loop.add_signal_handler(number, end_at_once, number)

    for number in STOPS:
        loop.add_signal_handler(number, stop)


def end_at_once(number: int) -> None:
    kill_children()
    # Stop the embedded server. A normal exit would first wait for the handlers' threads.
    atexit._run_exitfuncs()
    os._exit(128 + number)


def kill_children() -> None:
    """Kills the process group of each child, so that no process of a handler remains."""
    for listing in Path("/proc/self/task").glob("*/children"):
        for child in listing.read_text().split():
            with suppress(ProcessLookupError):
                os.killpg(int(child), signal.SIGKILL)
