"""Exports: begin, read, cancel and follow one, and follow all."""

from functools import partial
from uuid import UUID

from fastapi import APIRouter, Request, Response

from apps.resumes import exports
from apps.resumes.answers import Answer, ApiRoute, answer
from apps.resumes.routes.links import links, shown
from apps.resumes.routes.pages import Before, Count, place_of, split
from apps.resumes.routes.requests import ExportBody
from apps.resumes.stream import AllExportEvents, SomeExportEvents
from apps.resumes.views import API, begun_view
from batchmill.service import EventStreams, LastEventId, Reader, Submitter

router = APIRouter(route_class=ApiRoute)

JOB = "/export/job/{id}"


@router.post("/export/pdf", status_code=202)
async def begin_export(caller: Submitter, body: ExportBody) -> Answer:
    begun = await exports.begin(caller.client, body.document_id, body.chosen())
    return answer(begun_view(begun, await exports.get(caller.client, begun.id)))


@router.get("/export/jobs")
async def list_exports(
    request: Request, caller: Reader, before: Before, count: Count = 50
) -> Answer:
    """The newest exports of any status. `next` is the value of `before` for the next page."""
    # Read before the exports, so that a reader that continues after it misses nothing.
    position = await exports.feed_of(caller.client).position()
    found = await exports.exports_of(caller.client, listed=True, before=before, count=count + 1)
    rows, following = split(found, count, place_of)
    return answer(
        {
            "jobs": [await shown(request, caller, row) for row in rows],
            "next": following,
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
    log_before = partial(exports.log_before, caller.client)
    events = AllExportEvents(links(request, caller), log_before)
    return await streams.follow(caller, exports.feed_of(caller.client), after, show=events.show)
