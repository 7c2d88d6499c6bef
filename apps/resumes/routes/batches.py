"""Batches: export several documents together, read, follow and download them."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response

from apps.resumes import batches, exports
from apps.resumes.answers import Answer, ApiRoute, answer
from apps.resumes.batches import ExportBatch
from apps.resumes.routes.links import links, shown
from apps.resumes.routes.pages import Before, Count, split
from apps.resumes.routes.requests import BatchBody
from apps.resumes.stream import BatchEvents
from apps.resumes.views import batch_stream_url, batch_view, begun_view
from batchmill.service import Caller, EventStreams, LastEventId, Reader, Submitter, send_zip

router = APIRouter(prefix="/export", route_class=ApiRoute)

BATCH = "/batch/{id}"


@router.post("/batch", status_code=202)
async def begin_batch(caller: Submitter, body: BatchBody) -> Answer:
    id, begun = await batches.begin(caller.client, body.document_ids, body.chosen())
    rows = {row["id"]: row for row in (await batches.get(caller.client, id)).exports}
    return answer(
        {
            "batchId": id,
            "jobIds": [each.id for each in begun],
            "jobs": [begun_view(each, rows[each.id]) for each in begun],
            "streamUrl": batch_stream_url(id),
        }
    )


@router.get("/batches")
async def list_batches(
    request: Request, caller: Reader, before: Before, count: Count = 20
) -> Answer:
    """The newest batches. `next` is the value of `before` for the next page."""
    found = await batches.newest(caller.client, before=before, count=count + 1)
    page, following = split(found, count, lambda each: (each.created_at, each.id))
    views = [await view(request, caller, each) for each in page]
    return answer({"batches": views, "next": following})


async def view(request: Request, caller: Caller, batch: ExportBatch) -> dict[str, Any]:
    return batch_view(batch, [await shown(request, caller, row) for row in batch.exports])


@router.get(BATCH)
async def get_batch(request: Request, caller: Reader, id: UUID) -> Answer:
    # Read before the exports, so that a reader that continues after it misses nothing.
    position = await exports.feed_of(caller.client).position()
    batch = await batches.get(caller.client, id)
    return answer(await view(request, caller, batch) | {"lastEventId": position})


@router.get(BATCH + "/stream")
async def follow_batch(
    request: Request, streams: EventStreams, caller: Reader, id: UUID, after: LastEventId
) -> Response:
    """Ends when all exports of the batch have ended."""
    batch = await batches.get(caller.client, id)
    events = BatchEvents(links(request, caller), batch)
    if events.is_over:
        # All its exports are closed, so the log has nothing of them.
        return Response(status_code=204)
    stream = await streams.follow(
        caller,
        exports.feed_of(caller.client),
        after,
        show=events.show,
        whole=True,
        until=lambda: events.is_over,
    )
    # The log of an export that was deleted meanwhile has no end.
    events.end_closed(await batches.get(caller.client, id))
    return stream


@router.get(BATCH + "/download", response_class=Response)
async def download_batch(
    request: Request, caller: Reader, id: UUID, partial: bool = False
) -> Response:
    chunks = await batches.zip_of(caller.client, id, partial=partial)
    return send_zip(request, caller, f"resumes-{id}.zip", chunks)
