"""Jobs: a list, or the details of one job."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import typer
from pydantic_core import to_json
from rich.console import RenderableType
from rich.text import Text

from batchmill.cli import output
from batchmill.cli.batches import Count, Task, Tenant
from batchmill.cli.output import details, fitting_table, moment, number, span, state, table
from batchmill.cli.session import Session
from batchmill.domain.job import JobLine, JobRecord, JobState

LONGEST_VALUE = 500


async def jobs(
    session: Session,
    batch: Annotated[
        str | None, typer.Option(metavar="BATCH", help="Show only this batch.")
    ] = None,
    state: Annotated[JobState | None, typer.Option(help="Show only this state.")] = None,
    task: Task = None,
    tenant: Tenant = None,
    count: Count = 20,
) -> None:
    """List jobs, the newest first; with --batch, in the order of submission.

    Without --batch it searches the newest 100,000 live, failed and other ended jobs each.
    """
    async with session.mill as mill:
        found = await mill.jobs(batch, state=state, task=task, tenant=tenant, count=count)
    session.show(found, draw_list)


async def job(
    session: Session,
    job: Annotated[int, typer.Argument(min=1, metavar="JOB", help="The id of the job.")],
    full: Annotated[bool, typer.Option("--full", help="Do not truncate values.")] = False,
) -> None:
    """Show one job with its attempts."""
    async with session.mill as mill:
        found = await mill.job(job).get()
    longest = None if full else LONGEST_VALUE
    session.show(found, lambda record: output.stacked(draw(record, longest)))


def draw_list(found: list[JobLine]) -> RenderableType | str:
    if not found:
        return "No jobs found."
    return fitting_table(
        number("job"),
        "state",
        "task",
        "error",
        number("attempt"),
        number("ran"),
        number("created"),
        "tenant",
        rows=map(cells, found),
        at_least=4,
    )


def cells(line: JobLine) -> tuple[Any, ...]:
    error = Text.assemble((line.code, "red"), f" {line.message}") if line.code else ""
    return (
        line.id,
        state(line.state),
        line.task,
        error,
        line.attempt,
        span(line.run_seconds),
        moment(line.created_at),
        line.tenant,
    )


def draw(job: JobRecord, longest: int | None) -> Iterator[RenderableType]:
    about = {
        "job": job.id,
        "state": state(job.state),
        "task": job.task,
        "batch": f"{job.batch_id}, position {job.position}" if job.batch_id else None,
        "tenant": job.tenant,
        "key": job.key,
        "priority": job.priority or None,
        "attempt": job.attempt,
        "snoozes": job.snoozes or None,
        "created": moment(job.created_at),
        "run at": moment(job.run_at),
        "started": moment(job.started_at) if job.started_at else None,
        "finished": moment(job.finished_at) if job.finished_at else None,
        "labels": shown(job.labels, None) if job.labels else None,
        "progress": progress_text(job),
        "payload": shown(job.payload, longest),
        "result": shown(job.result, longest) if job.state is JobState.COMPLETED else None,
        "error": f"{job.error.code}: {job.error.message}" if job.error else None,
    }
    yield details({name: value for name, value in about.items() if value not in (None, "")})
    if job.attempts:
        yield draw_attempts(job.attempts)
    if job.error and job.error.detail:
        yield job.error.detail


def draw_attempts(attempts: list[dict[str, Any]]) -> RenderableType:
    return table(
        "stage",
        number("attempt"),
        number("started"),
        number("ran"),
        "worker",
        "error",
        title="Attempts that did not succeed",
        rows=map(attempt_cells, attempts),
    )


def attempt_cells(attempt: dict[str, Any]) -> tuple[Any, ...]:
    started, ended = (
        datetime.fromisoformat(attempt[name]) if attempt[name] else None
        for name in ("started_at", "ended_at")
    )
    return (
        attempt["task"],
        attempt["attempt"],
        moment(started),
        span(seconds_between(started, ended)),
        attempt["worker"] or "–",
        Text.assemble((attempt["code"], "red"), f" {attempt['message']}"),
    )


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    return (end - start).total_seconds() if start and end else None


def progress_text(job: JobRecord) -> str | None:
    if job.progress is None:
        return None
    percent = "" if job.progress.percent is None else f"{job.progress.percent:g} %"
    return " ".join(filter(None, (percent, job.progress.stage, job.progress.message)))


def shown(value: Any, longest: int | None) -> str:
    text = to_json(value).decode()
    if longest is None or len(text) <= longest:
        return text
    return f"{text[:longest]}… ({len(text):,} characters; --full shows all)"
