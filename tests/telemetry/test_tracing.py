"""One trace contains the submit, wait and run of a job, across processes."""

import asyncio
import json
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from batchmill import (
    Advance,
    IdempotencyConflict,
    InvalidPayload,
    Job,
    JobFailed,
    Mill,
    Permanent,
    Retry,
    Snooze,
    SyncJob,
    Transient,
    WorkerOptions,
)
from batchmill.telemetry import tracing
from tests.library.tools import echo_on, one, until
from tests.telemetry import traced

QUICK = Retry(attempts=3, base=0, jitter=0)
ALONE = WorkerOptions(upkeep=False, grace=0)
MARK = ContextVar("MARK", default=0)
GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def only(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    (span,) = named(exporter, name)
    return span


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def trace_ids(spans: Sequence[ReadableSpan]) -> set[int]:
    return {span.context.trace_id for span in spans if span.context}


def is_child_of(span: ReadableSpan, parent: ReadableSpan) -> bool:
    return bool(span.parent and parent.context and span.parent.span_id == parent.context.span_id)


def create_span() -> None:
    with trace.get_tracer("app").start_as_current_span("inside"):
        pass


# Spans of a job


async def test_one_trace_contains_submit_wait_and_run(
    mill: Mill, dsn: str, exporter: InMemorySpanExporter
) -> None:
    echo = echo_on(mill)
    batch = await mill.submit(echo, ["secret"])
    async with Mill(dsn) as other:
        echo_on(other)
        async with other.running(ALONE):
            await other.batch(batch.id).wait()
            await until(lambda: named(exporter, "wait echo"))
    submit, wait, run = (only(exporter, f"{step} echo") for step in ("submit", "wait", "run"))
    assert submit.parent is None
    assert is_child_of(wait, submit) and is_child_of(run, submit)
    assert len(trace_ids([submit, wait, run])) == 1
    assert (submit.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert attributes(submit)["messaging.batch.message_count"] == 1
    assert attributes(submit)["batchmill.batch_id"] == str(batch.id)
    (job,) = [job async for job in batch.jobs()]
    about = {"batchmill.job_id": job.id, "batchmill.attempt": 1}
    assert about.items() <= attributes(run).items()
    assert about.items() <= attributes(wait).items()
    assert attributes(run)["batchmill.batch_id"] == str(batch.id)
    assert attributes(run)["batchmill.outcome"] == "completed"
    assert wait.start_time and wait.end_time and wait.start_time <= wait.end_time
    assert run.status.status_code is StatusCode.UNSET
    assert "secret" not in all_spans(exporter)


def all_spans(exporter: InMemorySpanExporter) -> str:
    return "".join(span.to_json() for span in exporter.get_finished_spans())


async def test_a_submit_is_a_child_of_the_current_span(
    mill: Mill, exporter: InMemorySpanExporter
) -> None:
    echo = echo_on(mill)
    with trace.get_tracer("app").start_as_current_span("request"):
        job = await mill.enqueue(echo, 1)
    submit = only(exporter, "submit echo")
    assert is_child_of(submit, only(exporter, "request"))
    assert attributes(submit)["batchmill.job_id"] == job.id
    async with mill.running(ALONE):
        await job.result()
    assert is_child_of(only(exporter, "run echo"), submit)


async def test_every_attempt_has_its_own_run_span(
    mill: Mill, exporter: InMemorySpanExporter
) -> None:
    @mill.task(retry=QUICK)
    async def work(job: Job) -> Any:
        match job.attempt, job.snoozes:
            case 1, _:
                raise Transient("The key is hunter2.", code="locked")
            case 2, 0:
                return Snooze(0)
        return Advance(rest, None)

    @mill.task
    async def rest() -> None: ...

    async with mill.running(ALONE):
        await (await mill.enqueue(work)).result()
    runs = named(exporter, "run work")
    outcomes = [
        (attributes(s)["batchmill.attempt"], attributes(s)["batchmill.outcome"]) for s in runs
    ]
    assert outcomes == [(1, "retried"), (2, "snoozed"), (2, "advanced")]
    submit = only(exporter, "submit work")
    assert all(is_child_of(span, submit) for span in [*runs, only(exporter, "run rest")])
    assert runs[0].status.status_code is StatusCode.ERROR
    assert runs[1].status.status_code is StatusCode.UNSET
    assert attributes(runs[0])["error.type"] == "locked"
    assert "hunter2" not in all_spans(exporter)


async def test_spans_of_failed_attempts_have_the_error_code(
    mill: Mill, exporter: InMemorySpanExporter
) -> None:
    @mill.task
    async def work(n: int) -> None:
        raise Permanent("Number 4711 is no good.", code="refused")

    async with mill.running(ALONE):
        with pytest.raises(JobFailed):
            await (await mill.enqueue(work, 4711)).result()
    run = only(exporter, "run work")
    assert (run.status.status_code, run.status.description) == (StatusCode.ERROR, "refused")
    assert attributes(run)["batchmill.outcome"] == "failed"
    assert run.events == ()
    assert "4711" not in all_spans(exporter)


async def test_an_invalid_payload_has_a_failed_run_span(
    mill: Mill, dsn: str, exporter: InMemorySpanExporter
) -> None:
    @mill.task
    async def work(n: int) -> None: ...

    await mill.register_tasks()
    async with Mill(dsn) as other:
        job = await other.enqueue("work", "not a number")
    async with mill.running(ALONE):
        with pytest.raises(JobFailed):
            await mill.job(job.id).result()
    assert only(exporter, "run work").status.status_code is StatusCode.ERROR
    assert "not a number" not in all_spans(exporter)


async def test_the_span_of_a_cancelled_run_has_its_outcome(
    mill: Mill, exporter: InMemorySpanExporter
) -> None:
    begun = asyncio.Event()

    @mill.task
    async def work(n: int) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with mill.running(ALONE):
        batch = await mill.submit(work, [1])
        await begun.wait()
        await batch.cancel()
        await batch.wait()
    run = only(exporter, "run work")
    assert attributes(run)["batchmill.outcome"] == "cancelled"
    assert run.status.status_code is StatusCode.UNSET


async def test_the_span_of_a_refused_submit_has_the_error_code(
    mill: Mill, exporter: InMemorySpanExporter
) -> None:
    @mill.task
    async def work(n: int) -> None: ...

    with pytest.raises(InvalidPayload):
        await mill.submit(work, ["hunter2"])
    submit = only(exporter, "submit work")
    assert (submit.status.status_code, submit.status.description) == (
        StatusCode.ERROR,
        "invalid_payload",
    )
    assert "hunter2" not in all_spans(exporter)


class FailingProcessor(SpanProcessor):
    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if span.name.startswith("run"):
            raise OSError("The disk is full.")

    def on_end(self, span: Any) -> None:
        if span.name.startswith("run"):
            raise OSError("The disk is full.")


async def test_a_failing_span_processor_does_not_affect_jobs(
    mill: Mill, exporter: InMemorySpanExporter
) -> None:
    provider = trace.get_tracer_provider()
    assert isinstance(provider, TracerProvider)
    provider.add_span_processor(FailingProcessor())
    echo = echo_on(mill)
    async with mill.running(ALONE):
        assert await (await mill.enqueue(echo, 1)).result() == 1


# Where handlers run


async def test_spans_of_an_async_handler_are_children_of_its_run(
    mill: Mill, exporter: InMemorySpanExporter
) -> None:
    @mill.task
    async def work(n: int) -> None:
        await asyncio.sleep(0)
        create_span()

    async with mill.running(ALONE):
        await (await mill.submit(work, range(5))).wait()
    runs = named(exporter, "run work")
    inside = named(exporter, "inside")
    assert len(inside) == 5
    assert {s.parent.span_id for s in inside if s.parent} == {
        s.context.span_id for s in runs if s.context
    }


async def test_spans_of_a_handler_in_a_thread_are_children_of_its_run(
    mill: Mill, exporter: InMemorySpanExporter
) -> None:
    @mill.task
    def work(job: SyncJob) -> None:
        create_span()

    async with mill.running(ALONE):
        await (await mill.enqueue(work)).result()
    assert is_child_of(only(exporter, "inside"), only(exporter, "run work"))


async def test_each_handler_in_a_thread_has_a_new_context(mill: Mill) -> None:
    @mill.task
    def work(n: int) -> int:
        before = MARK.get()
        MARK.set(n)
        return before

    async with mill.running(WorkerOptions(threads=1, upkeep=False)):
        assert (await (await mill.submit(work, [1, 2, 3])).results()).values == [0, 0, 0]


async def test_spans_of_a_handler_in_a_process_are_children_of_its_run(
    mill: Mill, exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    """They are exported before the job ends, because its process may be killed at any time."""
    mill.tasks.update(traced.mill.tasks)
    async with mill.running(WorkerOptions(processes=1, upkeep=False)):
        span_id = await (await mill.enqueue(traced.in_process, str(tmp_path / "spans"))).result()
    run = only(exporter, "run in_process")
    assert run.context and span_id == f"{run.context.span_id:016x}"
    assert (tmp_path / "spans").read_text() == f"inside {span_id}\n"


async def test_a_child_process_has_no_span_without_tracing(mill: Mill) -> None:
    mill.tasks.update(traced.mill.tasks)
    async with mill.running(WorkerOptions(processes=1, upkeep=False)):
        assert await (await mill.enqueue(traced.untraced)).result() is False


async def test_a_run_is_not_a_child_of_the_span_that_started_the_worker(
    mill: Mill, exporter: InMemorySpanExporter, sql: psycopg.Connection
) -> None:
    echo_on(mill)
    with trace.get_tracer("app").start_as_current_span("start"):
        async with mill.running(ALONE):
            sql.execute("select batchmill.enqueue('echo', '1')")
            await until(lambda: named(exporter, "run echo"))
    assert only(exporter, "run echo").parent is None


# Trace context


async def test_users_do_not_see_the_trace_context_in_labels(
    mill: Mill, exporter: InMemorySpanExporter, sql: psycopg.Connection
) -> None:
    seen: list[dict[str, Any]] = []

    @mill.task
    async def work(job: Job) -> None:
        seen.append(job.labels)

    async with mill.running(ALONE):
        single = await mill.enqueue(work, labels={"a": "b"})
        await single.result()
        batch = await mill.submit(work, [None])
        await batch.wait()
    carried = one(sql, "select labels ->> 'traceparent' from batchmill.batches")[0]
    submit = named(exporter, "submit work")[-1]
    assert submit.context and f"-{submit.context.span_id:016x}-" in carried
    assert seen == [{"a": "b"}, {}]
    assert (await single.get()).labels == {"a": "b"}
    assert (await batch.get()).labels == {}
    assert [record.labels for record in await mill.batches()] == [{}]
    assert [job.labels async for job in batch.jobs()] == [{}]


async def test_idempotency_ignores_the_trace_context(
    mill: Mill, exporter: InMemorySpanExporter
) -> None:
    echo = echo_on(mill)
    first = await mill.submit(echo, [1], idempotency_key="k", labels={"a": "b"})
    again = await mill.submit(echo, [1], idempotency_key="k", labels={"a": "b"})
    assert (again.id, again.is_existing) == (first.id, True)
    assert len(trace_ids(named(exporter, "submit echo"))) == 2
    single = await mill.enqueue(echo, 1, idempotency_key="s")
    assert (await mill.enqueue(echo, 1, idempotency_key="s")).id == single.id
    with pytest.raises(IdempotencyConflict):
        await mill.submit(echo, [2], idempotency_key="k", labels={"a": "b"})


async def test_a_trace_context_can_be_passed_in_sql(
    mill: Mill, exporter: InMemorySpanExporter, sql: psycopg.Connection
) -> None:
    echo_on(mill)
    await mill.register_tasks()
    options = json.dumps({"labels": {"traceparent": GIVEN}})
    sql.execute("select batchmill.enqueue('echo', '1', %s)", [options])
    async with mill.running(ALONE):
        await until(lambda: named(exporter, "run echo"))
    run = only(exporter, "run echo")
    assert run.parent and f"{run.parent.span_id:016x}" in GIVEN


@pytest.mark.parametrize("value", ["nonsense", 7, {"deep": []}, None])
async def test_an_invalid_trace_context_is_ignored(
    mill: Mill, exporter: InMemorySpanExporter, sql: psycopg.Connection, value: Any
) -> None:
    echo_on(mill)
    await mill.register_tasks()
    options = json.dumps({"labels": {"traceparent": value}})
    answer = one(sql, "select batchmill.enqueue('echo', '1', %s)", options)[0]
    async with mill.running(ALONE):
        assert await mill.job(answer["job_id"]).result() == 1
    assert only(exporter, "run echo").parent is None


async def test_submits_from_sync_code_are_traced(
    mill: Mill, dsn: str, exporter: InMemorySpanExporter
) -> None:
    plain = Mill(dsn)
    echo = echo_on(plain)

    def submit() -> None:
        with trace.get_tracer("app").start_as_current_span("request"):
            plain.sync.enqueue(echo, 1)
            plain.sync.submit(echo, [1])
            with psycopg.connect(dsn) as conn:
                plain.sync.enqueue(echo, 1, connection=conn)
                plain.sync.submit(echo, [1], connection=conn)
        plain.sync.close()

    await asyncio.to_thread(submit)
    request = only(exporter, "request")
    submits = named(exporter, "submit echo")
    assert len(submits) == 4 and all(is_child_of(span, request) for span in submits)
    assert (await mill.batches())[0].labels == {}


async def test_no_trace_context_is_stored_without_a_provider(
    mill: Mill, sql: psycopg.Connection
) -> None:
    assert tracing.spans() is None
    await mill.submit(echo_on(mill), [1])
    assert one(sql, "select labels from batchmill.batches") == ({},)
