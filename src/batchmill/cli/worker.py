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
from batchmill.cli.parsing import parse_counts, parse_duration
from batchmill.cli.session import Session
from batchmill.errors import InvalidInput
from batchmill.telemetry import endpoint
from batchmill.worker.worker import Worker, WorkerOptions

log = logging.getLogger("batchmill.worker")

DEFAULTS = WorkerOptions()
STOPS = (signal.SIGTERM, signal.SIGINT)


async def worker(
    session: Session,
    concurrency: Annotated[
        int, typer.Option(help="How many jobs may run at the same time.")
    ] = DEFAULTS.concurrency,
    prefetch: Annotated[
        int, typer.Option(help="How many jobs to claim in advance while jobs take milliseconds.")
    ] = DEFAULTS.prefetch,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK=N",
            help="How many jobs of this task may run at the same time; can be repeated.",
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option(help="How many threads run plain functions.")
    ] = DEFAULTS.threads,
    processes: Annotated[
        int, typer.Option(help="How many child processes run tasks with process=True.")
    ] = DEFAULTS.processes,
    lease: Annotated[
        float,
        typer.Option(help="Seconds without a heartbeat until other workers take over its jobs."),
    ] = DEFAULTS.lease,
    grace: Annotated[
        float, typer.Option(help="Seconds that running jobs have to finish after a stop.")
    ] = DEFAULTS.grace,
    name: Annotated[
        str | None,
        typer.Option(help="The name that `status` shows. Default: host:pid.", show_default=False),
    ] = None,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="End when no job is due.")
    ] = False,
    at_most: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="End after this time, for example 50s. Only with --until-empty.",
            show_default=False,
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, help="The port for Prometheus metrics.", show_default=False
        ),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="The address to serve metrics on.")
    ] = "127.0.0.1",
    log_level: Annotated[LogLevel, typer.Option(help="The lowest level to log.")] = LogLevel.INFO,
) -> None:
    """Run the tasks of your mill (--app) until SIGTERM or Ctrl-C.

    A second signal ends it immediately.
    """
    seconds = None if at_most is None else parse_duration(at_most)
    if seconds is not None and not until_empty:
        raise InvalidInput(
            "--at-most limits the time of --until-empty. Add --until-empty, or omit --at-most."
        )
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
        if not until_empty:
            await running.run()
        elif await running.run_until_empty(seconds):
            log.info("No job is due.")
        else:
            log.info("Stopped before all due jobs were done.")


def stop_on_signals(running: Worker) -> None:
    """The first signal drains the worker; the next one ends the process immediately."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        log.info(
            "Stopping: waiting for running jobs to finish. A second signal ends them immediately."
        )
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
