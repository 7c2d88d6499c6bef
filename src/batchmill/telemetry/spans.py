"""The spans that batchmill makes. Needs the OpenTelemetry API, so only `tracing` imports this.

Spans record the code of a failure, not its message, which may hold a payload or a secret.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import version
from typing import Any, Self

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from batchmill.domain.job import TRACEPARENT, Claim
from batchmill.errors import BatchmillError

log = logging.getLogger("batchmill.tracing")

W3C = TraceContextTextMapPropagator()
NOBODY = (trace.ProxyTracerProvider, trace.NoOpTracerProvider)
FLUSH_SECONDS = 1.0


class Spans:
    def __init__(self, tracer: Tracer):
        self._tracer = tracer

    @classmethod
    def of_provider(cls) -> Self | None:
        """None if the program has set no provider, or one that drops everything."""
        if isinstance(trace.get_tracer_provider(), NOBODY):
            return None
        return cls(trace.get_tracer("batchmill", version("batchmill")))

    @contextmanager
    def submit(self, task: str, attributes: dict[str, Any]) -> Iterator[None]:
        span = self._tracer.start_span(
            f"submit {task}", kind=SpanKind.PRODUCER, attributes=_operation("send", "submit", task)
        )
        with trace.use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield
            except BaseException as error:
                is_ours = isinstance(error, BatchmillError)
                _fail(span, error.code if is_ours else type(error).__name__)
                raise
            finally:
                span.set_attributes(attributes)

    def waits(self, claims: Iterable[Claim]) -> None:
        """Records how long jobs that start now have waited, if they have a trace."""
        now = time.time_ns()
        for claim in claims:
            if parent := _parent_of(claim):
                with _harmless():
                    self._wait(claim, parent, now)

    def _wait(self, claim: Claim, parent: Context, until: int) -> None:
        span = self._tracer.start_span(
            f"wait {claim.task}",
            parent,
            attributes=_about(claim),
            start_time=until - int(claim.waited * 1e9),
        )
        span.end(until)

    def run(self, claim: Claim) -> "RunSpan":
        return RunSpan(self._tracer, claim)


class RunSpan:
    """The span of an attempt, from the start of its handler, if it starts, to its outcome. Errors
    in the program's span processors do not affect the attempt."""

    __slots__ = ("_claim", "_span", "_tracer")

    def __init__(self, tracer: Tracer, claim: Claim):
        self._tracer = tracer
        self._claim = claim
        self._span: Span | None = None

    def begin(self) -> None:
        """Starts the span and makes it the current one for the handler. Later calls do nothing:
        with a child process, the span has to exist before the process reports that the handler
        begins."""
        if self._span is None:
            with _harmless():
                self._span = self._start()
                # Never detached: the context belongs to the attempt and ends with it.
                attach(trace.set_span_in_context(self._span))

    @property
    def traceparent(self) -> str | None:
        return None if self._span is None else _traceparent(trace.set_span_in_context(self._span))

    def end(self, outcome: str, code: str | None) -> None:
        """Also records an attempt that failed before its handler began (invalid payload)."""
        with _harmless():
            if self._span is None and code is not None:
                self._span = self._start()
            if self._span is not None:
                self._span.set_attribute("batchmill.outcome", outcome)
                if code is not None:
                    _fail(self._span, code)
                self._span.end()

    def _start(self) -> Span:
        return self._tracer.start_span(
            f"run {self._claim.task}",
            _parent_of(self._claim),
            kind=SpanKind.CONSUMER,
            attributes=_operation("process", "run", self._claim.task) | _about(self._claim),
        )


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except Exception:
        log.exception("Cannot create a span. Check the span processors of your application.")


def current_traceparent() -> str | None:
    return _traceparent(None)


@contextmanager
def continued(traceparent: str) -> Iterator[None]:
    """Continues a trace in the block. Flushes spans at its end, because the process may be killed
    as soon as it has answered."""
    token = attach(_context_of(traceparent))
    try:
        yield
    finally:
        detach(token)
        _flush()


def _flush() -> None:
    """Waits only briefly: a slow exporter must not delay the job."""
    flush = getattr(trace.get_tracer_provider(), "force_flush", None)
    if flush is not None:
        sending = threading.Thread(target=flush, name="batchmill-flush", daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)


def _operation(kind: str, name: str, task: str) -> dict[str, Any]:
    """Follows the semantic conventions for messaging."""
    return {
        "messaging.system": "batchmill",
        "messaging.operation.type": kind,
        "messaging.operation.name": name,
        "messaging.destination.name": task,
    }


def _about(claim: Claim) -> dict[str, Any]:
    about: dict[str, Any] = {
        "batchmill.job_id": claim.id,
        "batchmill.attempt": claim.attempt,
    }
    if claim.batch_id is not None:
        about["batchmill.batch_id"] = claim.batch_id
    return about


def _fail(span: Span, code: str) -> None:
    span.set_attribute("error.type", code)
    span.set_status(Status(StatusCode.ERROR, code))


def _parent_of(claim: Claim) -> Context:
    """Empty for a job that was submitted without a trace: each attempt begins a new one."""
    carried = claim.traceparent
    return _context_of(carried) if isinstance(carried, str) else Context()


@lru_cache(maxsize=1_000)
def _context_of(traceparent: str) -> Context:
    """Cached, because all jobs of a batch have the same value."""
    return W3C.extract({TRACEPARENT: traceparent}, Context())


def _traceparent(context: Context | None) -> str | None:
    carrier: dict[str, str] = {}
    W3C.inject(carrier, context)
    return carrier.get(TRACEPARENT)
