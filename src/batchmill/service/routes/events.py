"""The event stream of a batch."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request, Response

from batchmill.service import schemas
from batchmill.service.caller import Reader
from batchmill.service.links import ByKeyOrLink, LinkSeconds, signed_link
from batchmill.service.problems import BadRequest
from batchmill.service.requests import ProblemRoute
from batchmill.service.service import AnyService

router = APIRouter(tags=["batches"], route_class=ProblemRoute)

DIGITS = 18

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
    service: AnyService,
    viewer: ByKeyOrLink,
    id: UUID,
    after: Annotated[
        str | None, Query(description="The number of the last event that the client has.")
    ] = None,
    last_event_id: Annotated[
        str | None, Header(description="The same, as an EventSource sends it. It takes precedence.")
    ] = None,
) -> Response:
    """Follows a batch with Server-Sent Events until it ends. A signed link replaces a key."""
    known = number_of(last_event_id or after or "0")
    return await service.streams.follow(viewer.client, id, known, key=viewer.key)


@router.post("/batches/{id}/events/link")
async def link_events(
    request: Request, caller: Reader, id: UUID, seconds: LinkSeconds = None
) -> schemas.Link:
    """A signed link to follow the batch, for a browser's EventSource, which cannot send a key."""
    await caller.client.batch(id).get()
    return await signed_link(request, caller, "batchmill.follow_batch", id, seconds)


def number_of(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS):
        raise BadRequest(
            "This is not a valid event number. Send the number of the last event that you "
            "have, or 0."
        )
    return int(text)
