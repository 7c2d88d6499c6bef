"""Exports: begin, read, cancel and follow one, and follow all."""

from uuid import UUID

from fastapi import APIRouter, Request, Response

from apps.resumes import exports
from apps.resumes.answers import Answer, ApiRoute, answer
from apps.resumes.routes.links import links, shown
from apps.resumes.routes.pages import Count
from apps.resumes.routes.requests import ExportBody
from apps.resumes.stream import ExportEvents, SomeExportEvents
from apps.resumes.views import API, stream_url
from batchmill import Client, Feed
from batchmill.service import EventStreams, LastEventId, Reader, Submitter

router = APIRouter(route_class=ApiRoute)

JOB = "/export/job/{id}"


def feed_of(client: Client) -> Feed:
    """The events of all exports of the user."""
    return client.feed(*next(iter(exports.LABELS.items())))


@router.post("/export/pdf", status_code=202)
async def begin_export(caller: Submitter, body: ExportBody) -> Answer:
    begun = await exports.begin(caller.client, body.document_id, body.chosen())
    row = await exports.get(caller.client, begun.id)
    return answer(
        {
            "jobId": begun.id,
            "status": row["status"],
            "reused": begun.is_reused,
            "expiresAt": row["expires_at"],
            "streamUrl": stream_url(begun.id),
        }
    )


@router.get("/export/jobs")
async def list_exports(request: Request, caller: Reader, count: Count = 50) -> Answer:
    """The newest exports of any status."""
    # Read before the exports, so that a reader that continues after it misses nothing.
    position = await feed_of(caller.client).position()
    rows = await exports.exports_of(caller.client, listed=True, count=count)
    return answer(
        {
            "jobs": [await shown(request, caller, row) for row in rows],
            "lastEventId": position,
            "streamUrl": f"{API}/stream",
        }
    )


@router.get(JOB)
async def get_export(request: Request, caller: Reader, id: UUID) -> Answer:
    return answer(await shown(request, caller, await exports.get(caller.client, id)))


@router.delete(JOB)
async def cancel_export(request: Request, caller: Submitter, id: UUID) -> Answer:
    return answer(await shown(request, caller, await exports.cancel(caller.client, id)))


@router.get(JOB + "/stream")
async def follow_export(
    request: Request, streams: EventStreams, caller: Reader, id: UUID, after: LastEventId
) -> Response:
    row = await exports.get(caller.client, id)
    if row["closed_at"] is not None:
        # Its log is deleted.
        return Response(status_code=204)
    events = SomeExportEvents(links(request, caller), [id])
    return await streams.follow(caller, id, after, show=events.show, whole=True)


@router.get("/stream")
async def follow_exports(
    request: Request, streams: EventStreams, caller: Reader, after: LastEventId
) -> Response:
    """The events of all exports of the user. It does not end."""
    events = ExportEvents(links(request, caller))
    return await streams.follow(caller, feed_of(caller.client), after, show=events.show)
