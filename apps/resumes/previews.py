"""Pictures of pages. They run as jobs of the engine, in a child process like exports, but are
submitted by the application itself, so they use up nothing of the user's quota."""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from apps.resumes.errors import PreviewBusy, PreviewTooSlow
from apps.resumes.mill import mill
from apps.resumes.models import Picture, Preview
from apps.resumes.options import ExportOptions, TemplateSlug
from apps.resumes.tasks import preview
from batchmill import Batch, BatchmillError, Conflict, JobFailed, NotFound, Permanent

PREVIEW_WIDTH = 900
THUMBNAIL_WIDTH = 340
# Pictures of a user that this server waits for. Further previews would be stale when they are made.
MOST_WAITING = 10
SECONDS = 70.0
HOUR = 3_600

waiting: Counter[str] = Counter()


async def picture(tenant: str, document: str, options: ExportOptions, page: int) -> Picture:
    """A page of a document that is being written. The next one differs, so nothing is kept."""
    given = Preview(document=document, options=options, page=page, width=PREVIEW_WIDTH)
    with room_for(tenant):
        batch = await mill.submit(preview, [given], tenant=tenant, expires_in=HOUR)
        try:
            results = await batch.results(SECONDS)
        finally:
            await forget(batch)
    for failed in results.failed:
        assert failed.error is not None
        raise refusal(failed.error.code, failed.error.message)
    return Picture.model_validate(results.values[0])


async def thumbnail(tenant: str, document: dict[str, Any], template: TemplateSlug) -> bytes:
    """The first page of a stored document, as a PNG. The engine keeps it for an hour."""
    key = thumbnail_key(document, template)
    given = Preview(
        document=document["content"],
        options=ExportOptions(template=template),
        page=1,
        width=THUMBNAIL_WIDTH,
    )
    with room_for(tenant):
        job = await mill.enqueue(
            preview, given, tenant=tenant, dedup_key=key, cache_key=key, expires_in=HOUR
        )
        try:
            made = await job.result(SECONDS)
        except JobFailed as error:
            raise refusal(error.error_code, str(error)) from None
    return base64.b64decode(Picture.model_validate(made).image)


def thumbnail_key(document: dict[str, Any], template: TemplateSlug) -> str:
    text = f"{document['id']} {document['version']} {template} {THUMBNAIL_WIDTH}"
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def room_for(tenant: str) -> Iterator[None]:
    if waiting[tenant] >= MOST_WAITING:
        raise PreviewBusy(MOST_WAITING)
    waiting[tenant] += 1
    try:
        yield
    except TimeoutError:
        raise PreviewTooSlow from None
    finally:
        waiting[tenant] -= 1
        if not waiting[tenant]:
            del waiting[tenant]


def refusal(code: str, message: str) -> BatchmillError:
    return PreviewTooSlow() if code == "timeout" else Permanent(message, code=code)


async def forget(batch: Batch) -> None:
    """A preview that still runs is stopped, and expires by itself."""
    with suppress(NotFound):
        try:
            await batch.delete()
        except Conflict:
            await batch.cancel()
