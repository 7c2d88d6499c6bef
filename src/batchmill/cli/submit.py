"""Submits from the command line. Payloads are JSON, as arguments or one per line in a file."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from batchmill.cli.completion import complete_task
from batchmill.cli.exits import ExitCode
from batchmill.cli.follow import exit_code_for, follow_batch
from batchmill.cli.output import note, print_json
from batchmill.cli.parsing import parse_duration, parse_moment, parse_pairs
from batchmill.cli.session import Session
from batchmill.cli.watch import suggest_retry
from batchmill.domain.task import Task
from batchmill.errors import InvalidInput, InvalidPayload

BATCH_ONLY = ("limit", "on_finish", "notify")
SINGLE_ONLY = ("dedup_key", "cache_key")


async def submit(
    session: Session,
    task: Annotated[
        str,
        typer.Argument(metavar="TASK", autocompletion=complete_task, help="The name of the task."),
    ],
    payload: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAYLOAD",
            help="JSON values, one per job; - reads lines of JSON from stdin.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A file with one JSON value per line."),
    ] = None,
    single: Annotated[
        bool, typer.Option("--single", help="Submit one job without a batch.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the end and show the progress.")
    ] = False,
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="The tenant that owns it.")
    ] = None,
    priority: Annotated[int | None, typer.Option(help="Higher priorities run first.")] = None,
    delay: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start after this time: 90, 5m, 2h, 1d.")
    ] = None,
    run_at: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Start at this time (ISO 8601).")
    ] = None,
    expires_in: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long to keep it: 7d.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A label; can be repeated."),
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Submits with the same key return the same batch or job."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="How many jobs of the batch may run at the same time.")
    ] = None,
    on_finish: Annotated[
        str | None,
        typer.Option(
            metavar="TASK",
            autocompletion=complete_task,
            help="A task to run when the batch finishes.",
        ),
    ] = None,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHOM",
            help="A URL or an email address to notify when the batch finishes; can be repeated.",
        ),
    ] = None,
    dedup_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="With --single: return the live job with this key, if there is one."
        ),
    ] = None,
    cache_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="With --single: use the cached result with this key, if there is one.",
        ),
    ] = None,
) -> ExitCode:
    """Submit a batch, or a single job, and print its id."""
    options = {
        "tenant": tenant,
        "priority": priority,
        "delay": parse_duration(delay) if delay else None,
        "run_at": parse_moment(run_at) if run_at else None,
        "expires_in": parse_duration(expires_in) if expires_in else None,
        "idempotency_key": idempotency_key,
        "labels": parse_pairs(label or [], "label") or None,
        "limit": limit,
        "on_finish": on_finish,
        "notify": notify or None,
        "dedup_key": dedup_key,
        "cache_key": cache_key,
    }
    options = {name: value for name, value in options.items() if value is not None}
    refuse_options(options, single=single)
    submit_them = submit_single if single else submit_batch
    async with session.mill as mill:
        found = mill.find_task(task)
        with opened(payload or [], file) as texts:
            return await submit_them(session, found, read_payloads(found, texts), options, wait)


async def submit_batch(
    session: Session, task: Task[..., Any], payloads: Iterable[Any], options: Any, wait: bool
) -> ExitCode:
    batch = await session.mill.submit(task, payloads, **options)
    if not wait:
        session.show({"batch_id": batch.id, "existing": batch.is_existing}, lambda _: str(batch.id))
        return ExitCode.DONE
    ended = await follow_batch(batch, json=session.json)
    suggest_retry(ended)
    return exit_code_for(ended)


async def submit_single(
    session: Session, task: Task[..., Any], payloads: Iterable[Any], options: Any, wait: bool
) -> ExitCode:
    given = list(payloads)
    if len(given) > 1:
        raise InvalidInput(
            f"--single takes one payload, not {len(given)}. Omit --single to submit a batch."
        )
    job = await session.mill.enqueue(task, given[0] if given else None, **options)
    answer = {"job_id": job.id, "duplicate": job.is_duplicate, "cached": job.is_cached}
    if not wait:
        session.show(answer, lambda _: str(job.id))
        return ExitCode.DONE
    note(f"Waiting for job {job.id}.")
    result = await job.result()
    print_json(answer | {"result": result} if session.json else result)
    return ExitCode.DONE


def refuse_options(options: dict[str, Any], *, single: bool) -> None:
    for name in BATCH_ONLY if single else SINGLE_ONLY:
        if name in options:
            option, what = name.replace("_", "-"), "a batch" if single else "a --single job"
            raise InvalidInput(f"--{option} is for {what} only.")


@contextmanager
def opened(payloads: list[str], file: Path | None) -> Iterator[Iterable[str]]:
    """The texts of all payloads. Files of any size are read while they are submitted."""
    if file and payloads:
        raise InvalidInput("Give payloads as arguments or in a --file, not both.")
    if file:
        with file.open(encoding="utf-8") as lines:
            yield lines
    elif payloads == ["-"]:
        yield sys.stdin
    else:
        yield payloads


def read_payloads(task: Task[..., Any], texts: Iterable[str]) -> Iterator[Any]:
    try:
        for place, text in enumerate(texts, 1):
            if not text.isspace():
                yield read_payload(task, text, place)
    except UnicodeError as error:
        raise InvalidInput(f"The payloads are not UTF-8 text: {error}.") from None


def read_payload(task: Task[..., Any], text: str, place: int) -> Any:
    try:
        return task.payload.load(text.encode())
    except InvalidPayload as error:
        raise InvalidPayload(f"payload {place}: {error.path}", error.reason) from None
