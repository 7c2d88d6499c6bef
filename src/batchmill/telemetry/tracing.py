"""Traces by OpenTelemetry, if the program has set them up: submit, wait and run.

A program that has not loaded the API cannot have set up anything, so nothing is imported for it.
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json, to_json

from batchmill.domain.job import TRACEPARENT

if TYPE_CHECKING:
    from batchmill.telemetry.spans import Spans

API = "opentelemetry.trace"


def spans() -> "Spans | None":
    """None unless there is someone to hand spans to."""
    if API not in sys.modules:
        return None
    from batchmill.telemetry.spans import Spans

    return Spans.of_provider()


@contextmanager
def submitting(task: str) -> Iterator[dict[str, Any]]:
    """The span of a submit; what the block puts into the dictionary is told in it."""
    told: dict[str, Any] = {}
    with tracing.submit(task, told) if (tracing := spans()) else nullcontext():
        yield told


def with_trace(call: dict[str, Any]) -> dict[str, Any]:
    """A call that submits, with the current trace among its labels: those reach every claim. Only
    now, as a repeated request has another trace and is the same request all the same."""
    if API not in sys.modules:
        return call
    from batchmill.telemetry.spans import current_traceparent

    if (traceparent := current_traceparent()) is None:
        return call
    options = from_json(call["options"])
    options["labels"] = {TRACEPARENT: traceparent} | options.get("labels", {})
    return call | {"options": to_json(options).decode()}


def continuing(traceparent: str | None) -> AbstractContextManager[None]:
    """Goes on in a child process with the trace of the attempt that its worker runs there."""
    if traceparent is None:
        return nullcontext()
    try:
        from batchmill.telemetry.spans import continued
    except ModuleNotFoundError:
        return nullcontext()
    return continued(traceparent)
