"""The tasks: an export, a preview, and the cleanup. The first two run in a child process, because
rendering computes for seconds and a document of a stranger may crash it."""

import base64
import itertools
import json
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from apps.resumes import cleanup as expiry
from apps.resumes.document import Resume, read
from apps.resumes.mill import mill, settings
from apps.resumes.models import Export, ExportResult, Picture, Preview
from apps.resumes.options import ExportOptions
from apps.resumes.rendering import TooMuchMemory, picture_of, render
from batchmill import (
    BatchmillError,
    Job,
    Limits,
    Permanent,
    Retry,
    StorageExceeded,
    SyncJob,
    Transient,
)

log = logging.getLogger("apps.resumes")

# Counts the documents that this process renders.
numbers = itertools.count(1)

# Retries after 60, 120, 240 and 480 seconds, each ± 20 %.
RETRY = Retry(attempts=5, base=settings.retry_seconds, factor=2, cap=3_600, jitter=0.2)
# Somebody waits for a preview, and asks again.
ONCE = Retry(attempts=1)
EXPORT_SECONDS = 120.0
PREVIEW_SECONDS = 60.0
# The largest document that is accepted takes 264 MiB. Three at once take less than 1 GB, including
# fonts and libraries, which do not count here.
MEMORY = 300 * 1_048_576
# A document has up to 1 MiB, and its text is escaped in the payload.
PAYLOAD = 4 * 1_048_576
PREVIEWS = 2
PDF = "application/pdf"

# What an export reports when it begins a step, in the order of the steps.
STEPS = {"fetch": 25, "render": 50, "generate": 75, "upload": 90}
MESSAGES = {
    "fetch": "Reading the document",
    "render": "Laying out the pages",
    "generate": "Writing the PDF",
    "upload": "Storing the PDF",
}


def prepare() -> None:
    """Loads the libraries, the fonts and the templates, which takes longer than a page."""
    render(Resume(), ExportOptions(), nothing)


def nothing(_: str) -> None:
    """Nobody follows the steps."""


@mill.task(
    name="resumes.export",
    entry=True,
    process=True,
    prepare=prepare,
    retry=RETRY,
    timeout=EXPORT_SECONDS,
    memory=MEMORY,
    payload_limit=PAYLOAD,
    limits=Limits(total=settings.concurrency),
)
def export(job: SyncJob, given: Export) -> ExportResult:
    def report(step: str) -> None:
        job.progress(step, MESSAGES[step], STEPS[step])

    with without_content():
        rendered = render(resume_in(given.document), given.options, report)
    report("upload")
    try:
        file = job.artifacts.save(given.file_name, rendered.pdf, media_type=PDF)
    except StorageExceeded as error:
        # The message has the numbers.
        raise Permanent(str(error), code=error.code) from None
    return ExportResult(file=file, page_count=rendered.page_count, warnings=rendered.warnings)


@mill.task(
    name="resumes.preview",
    process=True,
    prepare=prepare,
    retry=ONCE,
    timeout=PREVIEW_SECONDS,
    memory=MEMORY,
    payload_limit=PAYLOAD,
    limits=Limits(total=PREVIEWS, per_tenant=1),
)
def preview(given: Preview) -> Picture:
    with without_content():
        rendered = render(resume_in(given.document), given.options, nothing)
        page = min(given.page, rendered.page_count)
        image = picture_of(rendered.pdf, page, given.width)
    return Picture(
        image=base64.b64encode(image).decode(),
        page=page,
        page_count=rendered.page_count,
        warnings=rendered.warnings,
    )


def resume_in(text: str) -> Resume:
    return read(json.loads(text))


@contextmanager
def without_content() -> Iterator[None]:
    """Replaces unexpected errors, whose texts may quote the document. The log has their place."""
    is_first = next(numbers) == 1
    try:
        yield
        return
    except BatchmillError:
        raise
    except MemoryError as error:
        # Another process may have enough, unless this one was new: libraries leak some memory.
        replacement = TooMuchMemory() if is_first else failed()
        place = place_of(error)
    except Exception as error:
        replacement = failed()
        place = place_of(error)
    log.warning("Rendering failed: %s.", place)
    # Operators see the text of an error that led to this one.
    raise replacement from None


def failed() -> Transient:
    return Transient("The PDF could not be made.", code="RENDERING_FAILED")


def place_of(error: Exception) -> str:
    """The type of an error and where it was raised, without its text."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {place.filename}, line {place.lineno}"


@mill.task(name="resumes.cleanup")
async def cleanup(job: Job) -> int:
    """Deletes expired exports. A schedule runs it every hour."""
    return await expiry.clean_up(job.mill)
