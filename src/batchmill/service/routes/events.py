"""The event streams of a batch and of several batches."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response

from batchmill.service import schemas
from batchmill.service.caller import Reader
from batchmill.service.links import ByKeyOrLink, LinkSeconds, signed_link
from batchmill.service.requests import GuardedRoute
from batchmill.service.service import EventStreams
from batchmill.service.sse import LastEventId

router = APIRouter(tags=["batches"], route_class=GuardedRoute)

EVENT = {
    "type": "object",
    "properties": {
        "id": {
            "type": "string",
            "description": "Send it as `Last-Event-ID` to continue after this event. In the stream "
            "of a batch, it is the number of the event, starting at 1, without gaps.",
        },
        "event": {"type": "string", "description": "The type of the event, such as job_completed."},
        "data": {"type": "string", "description": "The whole event, as a JSON object."},
    },
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The log after that event: first the existing events, then new ones.",
        "content": {"text/event-stream": {"schema": EVENT}},
    },
}
NO_MORE: dict[int | str, dict[str, Any]] = {
    204: {"description": "The batch has ended, and there are no more events. Do not reconnect."}
}


@router.get(
    "/batches/{id}/events",
    name="batchmill.follow_batch",
    summary="Follow Batch",
    response_class=Response,
    responses=ANSWERS | NO_MORE,
)
async def follow_batch(
    streams: EventStreams, viewer: ByKeyOrLink, id: UUID, after: LastEventId
) -> Response:
    """Follows a batch with Server-Sent Events until it ends. A signed link replaces a key."""
    return await streams.follow(viewer, id, after)


@router.get("/events", response_class=Response, responses=ANSWERS)
async def follow_batches(
    streams: EventStreams,
    caller: Reader,
    after: LastEventId,
    label: schemas.Name | None = None,
    value: schemas.Name | None = None,
) -> Response:
    """Follows all batches of the tenant with Server-Sent Events, or those with one label, also
    batches that are submitted later. The stream does not end."""
    return await streams.follow(caller, caller.client.feed(label, value), after)


@router.post("/batches/{id}/events/link")
async def link_events(
    request: Request, caller: Reader, id: UUID, seconds: LinkSeconds = None
) -> schemas.Link:
    """A signed link to follow the batch, for a browser's EventSource, which cannot send a key."""
    await caller.client.batch(id).get()
    return await signed_link(request, caller, "batchmill.follow_batch", id, seconds)
