"""OpenTelemetry traces of submit, wait and run, if the program has set up tracing.

A program that has not loaded the API cannot have set up tracing, so nothing is imported for it.
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
    """None unless the program has set up a provider for spans."""
    if API not in sys.modules:
        return None
    from batchmill.telemetry.spans import Spans

    return Spans.of_provider()


@contextmanager
def submitting(task: str) -> Iterator[dict[str, Any]]:
    """Records the span of a submit. The block puts the span's attributes into the dictionary."""
    attributes: dict[str, Any] = {}
    with tracing.submit(task, attributes) if (tracing := spans()) else nullcontext():
        yield attributes


def with_trace(call: dict[str, Any]) -> dict[str, Any]:
    """Adds the current trace to the labels of a submitting call; labels reach every claim. This
    happens after the digest is computed: a repeated request has another trace but is the same
    request."""
    if API not in sys.modules:
        return call
    from batchmill.telemetry.spans import current_traceparent

    if (traceparent := current_traceparent()) is None:
        return call
    options = from_json(call["options"])
    options["labels"] = {TRACEPARENT: traceparent} | options.get("labels", {})
    return call | {"options": to_json(options).decode()}


def continuing(traceparent: str | None) -> AbstractContextManager[None]:
    """Continues the trace of the attempt in the child process that runs it."""
    if traceparent is None:
        return nullcontext()
    try:
        from batchmill.telemetry.spans import continued
    except ModuleNotFoundError:
        return nullcontext()
    return continued(traceparent)
