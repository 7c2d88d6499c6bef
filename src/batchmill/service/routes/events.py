"""The event stream of a batch."""

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
            "description": "The number of the event, starting at 1, without gaps.",
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
    204: {"description": "The batch has ended, and there are no more events. Do not reconnect."},
}


@router.get(
    "/batches/{id}/events",
    name="batchmill.follow_batch",
    summary="Follow Batch",
    response_class=Response,
    responses=ANSWERS,
)
async def follow_batch(
    streams: EventStreams, viewer: ByKeyOrLink, id: UUID, after: LastEventId
) -> Response:
    """Follows a batch with Server-Sent Events until it ends. A signed link replaces a key."""
    return await streams.follow(viewer, id, after)


@router.post("/batches/{id}/events/link")
async def link_events(
    request: Request, caller: Reader, id: UUID, seconds: LinkSeconds = None
) -> schemas.Link:
    """A signed link to follow the batch, for a browser's EventSource, which cannot send a key."""
    await caller.client.batch(id).get()
    return await signed_link(request, caller, "batchmill.follow_batch", id, seconds)
