"""The API under /api."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from apps.calls import operations
from apps.calls.mill import providers, settings
from apps.calls.models import Transcript
from apps.calls.search import moments_of
from apps.calls.stream import UploadStream, events_before, shown
from apps.calls.tables import CALLS
from apps.calls.transcript import Format, formatted
from apps.calls.upload import Upload, upload
from apps.calls.views import (
    FIRST_STAGE,
    STATUSES,
    call_row,
    call_view,
    calls_of,
    kept_files,
    stage_of,
    stream_url,
)
from batchmill import BatchState, Client, Conflict, Feed, NotFound
from batchmill.service import (
    BadRequest,
    ByKeyOrLink,
    Caller,
    EventStreams,
    GuardedRoute,
    IdempotencyKey,
    LastEventId,
    Reader,
    Submitter,
    send_file,
    sign_in,
    sign_out,
    signed_url,
)


class OpenRoute(GuardedRoute):
    """For requests without a key."""

    anonymous = True


router = APIRouter(prefix="/api", route_class=GuardedRoute)
session = APIRouter(prefix="/api/session", route_class=OpenRoute)

LINK_SECONDS = 3_600
CALL = "/calls/{id}"
MEDIA_TYPES = {
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
    "srt": "application/x-subrip; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
}

Status = Literal["queued", "processing", "done", "failed", "cancelled"]


class SignIn(BaseModel):
    key: str


@session.post("")
async def begin_session(request: Request, response: Response, body: SignIn) -> dict[str, Any]:
    caller = await sign_in(request, response, body.key)
    return {"orgId": caller.tenant}


@session.delete("", status_code=204)
async def end_session(request: Request, response: Response) -> None:
    sign_out(request, response)


@router.get("/session")
async def get_session(caller: Reader) -> dict[str, Any]:
    """Who is signed in, and what this server offers."""
    return {
        "orgId": caller.tenant,
        "signedIn": caller.key is not None,
        "providers": list(providers),
        "provider": settings.provider,
        "language": settings.language,
    }


@router.post("/calls", status_code=202)
async def upload_calls(
    request: Request, caller: Submitter, idempotency_key: IdempotencyKey = None
) -> dict[str, Any]:
    uploaded = await upload(request, caller, idempotency_key)
    return {
        "uploadId": uploaded.id,
        "streamUrl": f"/api/uploads/{uploaded.id}/stream",
        "calls": await uploaded_views(caller.client, uploaded),
    }


async def uploaded_views(client: Client, uploaded: Upload) -> list[dict[str, Any]]:
    """New calls are queued. Calls of a repeated request may be in a later state."""
    is_repeated = any(call.batch.is_existing for call in uploaded.calls)
    rows = await calls_of(client, upload=uploaded.id, count=None) if is_repeated else []
    states = {row["id"]: (STATUSES[row["batch_state"]], stage_of(row["task"])) for row in rows}
    views = list[dict[str, Any]]()
    for call in uploaded.calls:
        id = call.batch.id
        status, stage = states.get(id, ("queued", FIRST_STAGE))
        views.append(
            {
                "id": id,
                "name": call.name,
                "status": status,
                "stage": stage,
                "streamUrl": stream_url(id),
            }
        )
    return views


@router.get("/calls")
async def list_calls(
    caller: Reader,
    q: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    status: Status | None = None,
    upload: UUID | None = None,
    before: str | None = None,
    count: Annotated[int, Query(ge=1, le=200)] = 50,
) -> dict[str, Any]:
    """The newest calls. `next` is the value of `before` for the next page. With `q`, the calls in
    which these words were said, each with the moments."""
    # Read before the calls, so that a reader that continues after it misses nothing.
    position = await feed_of(caller.client).position()
    rows = await calls_of(
        caller.client,
        upload=upload,
        status=status,
        words=q,
        before=parsed_cursor(before),
        count=count + 1,
    )
    calls = [call_view(row) for row in rows[:count]]
    if q:
        moments = await moments_of(caller.client, [call["id"] for call in calls], q)
        calls = [call | {"moments": moments[call["id"]]} for call in calls]
    return {
        "calls": calls,
        "next": cursor_of(rows[count - 1]) if len(rows) > count else None,
        "lastEventId": position,
        "streamUrl": "/api/stream",
    }


def cursor_of(row: dict[str, Any]) -> str:
    """All its characters may be in an address as they are."""
    return f"{row['created_at'].astimezone(UTC):%Y%m%dT%H%M%S.%fZ}_{row['id']}"


def parsed_cursor(text: str | None) -> tuple[datetime, UUID] | None:
    if text is None:
        return None
    try:
        created_at, id = text.split("_")
        return datetime.fromisoformat(created_at), UUID(id)
    except ValueError:
        raise BadRequest("before is invalid. Send the value of next from the last page.") from None


def feed_of(client: Client) -> Feed:
    """The events of all calls of the organisation."""
    return client.feed("application", "calls")


@router.get("/stream")
async def follow_calls(streams: EventStreams, caller: Reader, after: LastEventId) -> Response:
    return await streams.follow(caller, feed_of(caller.client), after, show=shown)


@router.get("/uploads/{id}/stream")
async def follow_upload(
    streams: EventStreams, viewer: ByKeyOrLink, id: UUID, after: LastEventId
) -> Response:
    """Ends when all calls of the upload have ended. After a retry, open a new stream."""
    rows = await calls_of(viewer.client, upload=id, count=None)
    if not rows:
        raise NotFound(f"There is no upload {id}.")
    feed = viewer.client.feed("upload", str(id))
    # The feed counts events of deleted calls too, but does not send them. So if calls were deleted,
    # the number in the id does not say how many events of the others the client has.
    is_complete = len(rows) == rows[0]["upload_size"]
    has = events_before(after, await feed.position()) if is_complete else 0
    stream = UploadStream(rows, has)
    return await streams.follow(
        viewer,
        feed,
        after,
        show=stream.show,
        whole=not is_complete,
        until=lambda: stream.is_over,
    )


@router.get(CALL)
async def get_call(request: Request, caller: Reader, id: UUID) -> dict[str, Any]:
    row = await call_row(caller.client, id)
    usage = await caller.client.batch(id).usage()
    files = [await file_view(request, caller, name, file) for name, file in kept_files(row).items()]
    return call_view(row) | {"usage": usage, "files": files}


async def file_view(
    request: Request, caller: Caller, name: str, file: dict[str, Any]
) -> dict[str, Any]:
    """A file with a link that works without a key for an hour."""
    id = file["artifact"]
    url = await signed_url(request, caller, "batchmill.download_artifact", LINK_SECONDS, id=id)
    return {
        "kind": name,
        "name": file["name"],
        "size": file["size"],
        "sha256": file["sha256"],
        "url": url,
    }


async def file_of(client: Client, id: UUID, kind: str) -> UUID:
    row = await call_row(client, id)
    if kind not in (files := kept_files(row)):
        raise NotFound(f"The call {id} has no {kind}.")
    return UUID(files[kind]["artifact"])


@router.get(CALL + "/stream")
async def follow_call(
    streams: EventStreams, viewer: ByKeyOrLink, id: UUID, after: LastEventId
) -> Response:
    await call_row(viewer.client, id)
    return await streams.follow(viewer, id, after, show=shown)


@router.get(CALL + "/audio")
async def get_audio(request: Request, viewer: ByKeyOrLink, id: UUID) -> Response:
    return await send_file(request, viewer, await file_of(viewer.client, id, "audio"))


@router.get(CALL + "/peaks")
async def get_peaks(viewer: ByKeyOrLink, id: UUID) -> Response:
    """Sent from here, because scripts of a page cannot read answers of an object store."""
    file = await file_of(viewer.client, id, "peaks")
    return Response(await viewer.client.artifacts.read(file), media_type=MEDIA_TYPES["json"])


@router.get(CALL + "/transcript")
async def get_transcript(viewer: ByKeyOrLink, id: UUID, format: Format = "json") -> Response:
    file = await file_of(viewer.client, id, "transcript")
    text = await rendered(await viewer.client.artifacts.read(file), format)
    # Without a name, so that a page can name the file after the call.
    headers = {"Content-Disposition": "attachment"}
    return Response(text, media_type=MEDIA_TYPES[format], headers=headers)


async def rendered(stored: bytes, format: Format) -> bytes:
    """A stored transcript in another format. In a thread, because a long one takes seconds."""
    if format == "json":
        return stored

    def render() -> bytes:
        return formatted(Transcript.model_validate_json(stored), format).encode()

    return await asyncio.to_thread(render)


@router.get(CALL + "/analysis")
async def get_analysis(viewer: ByKeyOrLink, id: UUID) -> Response:
    file = await file_of(viewer.client, id, "analysis")
    return Response(await viewer.client.artifacts.read(file), media_type=MEDIA_TYPES["json"])


@router.post(CALL + "/retry")
async def retry_call(caller: Submitter, id: UUID) -> dict[str, Any]:
    """Runs the failed stage again."""
    await call_row(caller.client, id)
    await caller.client.batch(id).retry()
    return call_view(await call_row(caller.client, id))


@router.post(CALL + "/cancel")
async def cancel_call(caller: Submitter, id: UUID) -> dict[str, Any]:
    await call_row(caller.client, id)
    await caller.client.batch(id).cancel()
    return call_view(await call_row(caller.client, id))


@router.delete(CALL, status_code=204)
async def delete_call(caller: Submitter, id: UUID) -> None:
    """Deletes an ended call with its files, and what its operations still have at the provider. A
    row that remains after a crash is not listed, and is deleted at night."""
    row = await call_row(caller.client, id)
    if row["finished_at"] is None:
        raise Conflict(not_ended(row))
    # First the batch: a retry would start another operation.
    await caller.client.batch(id).delete()
    await operations.abandon(caller.client, id)
    await CALLS.rows(caller.client, "delete_call", id=id)


def not_ended(row: dict[str, Any]) -> str:
    if row["batch_state"] == BatchState.CANCELLED:
        return f"The call {row['id']} is still stopping. Try again in a few seconds."
    return f"The call {row['id']} has not ended. Cancel it first."
