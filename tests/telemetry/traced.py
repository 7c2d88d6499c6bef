"""Tasks that run in child processes. The child processes import this module."""

from collections.abc import Sequence
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from batchmill import Mill

mill = Mill("postgresql://nowhere")


class FileExporter(SpanExporter):
    """Writes the name of each span and the id of its parent to a file."""

    def __init__(self, path: Path):
        self._path = path

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with self._path.open("a") as file:
            for span in spans:
                assert span.parent is not None
                file.write(f"{span.name} {span.parent.span_id:016x}\n")
        return SpanExportResult.SUCCESS


@mill.task(process=True)
def in_process(path: str) -> str:
    """Creates a span, and returns the id of the span in which it runs."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(FileExporter(Path(path))))
    trace.set_tracer_provider(provider)
    with trace.get_tracer("app").start_as_current_span("inside"):
        pass
    return f"{trace.get_current_span().get_span_context().span_id:016x}"


@mill.task(process=True)
def untraced() -> bool:
    return trace.get_current_span().get_span_context().is_valid
