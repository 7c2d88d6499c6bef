"""Artifacts: input and output files."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request, Response

from batchmill.domain.artifact import ArtifactKind
from batchmill.service import schemas
from batchmill.service.caller import Reader, Submitter
from batchmill.service.download import download_headers
from batchmill.service.links import ByKeyOrLink, LinkSeconds, signed_link
from batchmill.service.pages import Cursor, Pages, Size
from batchmill.service.requests import GuardedRoute
from batchmill.service.sending import send_file, send_zip
from batchmill.service.service import AnyService
from batchmill.store.artifacts import FIRST

router = APIRouter(tags=["artifacts"], route_class=GuardedRoute)

BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
ANY_BYTES = {"*/*": BYTES["application/octet-stream"]}
FileName = Annotated[str, Query(min_length=1, max_length=255, description="The name of the file.")]


@router.put(
    "/artifacts",
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": BYTES}},
)
async def upload_artifact(
    request: Request, service: AnyService, caller: Submitter, name: FileName
) -> schemas.Artifact:
    """Stores the body as a file. It expires in a day, unless a batch refers to it."""
    record = await caller.client.artifacts.save(
        name,
        request.stream(),
        media_type=announced_type(request),
        size=announced_size(request),
        at_most=service.settings.max_file,
    )
    return schemas.Artifact.model_validate(record)


def announced_type(request: Request) -> str | None:
    """Ignores curl's default type, which carries no information about the body."""
    kind = request.headers.get("content-type")
    return None if kind == "application/x-www-form-urlencoded" else kind


def announced_size(request: Request) -> int | None:
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else None


@router.get("/artifacts/{id}")
async def get_artifact(caller: Reader, id: UUID) -> schemas.Artifact:
    return schemas.Artifact.model_validate(await caller.client.artifacts.get(id))


@router.delete("/artifacts/{id}", status_code=204)
async def delete_artifact(caller: Submitter, id: UUID) -> None:
    await caller.client.artifacts.delete(id)


@router.post("/artifacts/{id}/link")
async def link_artifact(
    request: Request, caller: Reader, id: UUID, seconds: LinkSeconds = None
) -> schemas.Link:
    """A signed link, which works without a key."""
    await caller.client.artifacts.get(id)
    return await signed_link(request, caller, "batchmill.download_artifact", id, seconds)


@router.get(
    "/artifacts/{id}/content",
    name="batchmill.download_artifact",
    summary="Download Artifact",
    response_class=Response,
    responses={
        200: {"content": ANY_BYTES, "description": "The file."},
        206: {"content": ANY_BYTES, "description": "The requested range of the file."},
        304: {"description": "The client already has this version."},
        307: {"description": "The file is in an object store: follow the redirect."},
    },
)
async def download_artifact(
    request: Request,
    viewer: ByKeyOrLink,
    id: UUID,
    range: Annotated[str | None, Header()] = None,
    if_range: Annotated[str | None, Header()] = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """The content of the file. Accepts a signed link instead of a key."""
    # The headers are parameters so that the description of the API has them.
    return await send_file(request, viewer, id)


@router.head("/artifacts/{id}/content", include_in_schema=False)
async def head_artifact(viewer: ByKeyOrLink, id: UUID) -> Response:
    return Response(headers=download_headers(await viewer.client.artifacts.get(id)))


@router.get(
    "/batches/{id}/archive",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "The ZIP file."}},
)
async def download_archive(request: Request, caller: Reader, id: UUID) -> Response:
    """All output files of a batch, as a ZIP with a manifest that lists what is missing."""
    return send_zip(request, caller, f"{id}.zip", await caller.client.artifacts.archive(id))


@router.get("/batches/{id}/artifacts")
async def list_artifacts(
    caller: Reader,
    id: UUID,
    kind: ArtifactKind | None = None,
    size: Size = 100,
    cursor: Cursor = None,
) -> schemas.Artifacts:
    """The input and output files of a batch."""
    await caller.client.batch(id).get()
    pages = Pages(caller, f"artifacts of {id}")
    (after,) = await pages.place(cursor, UUID) or (FIRST,)
    found = await caller.client.store.artifacts.page_of_batch(id, kind, after, size + 1)
    return schemas.Artifacts(
        artifacts=[schemas.Artifact.model_validate(each) for each in found[:size]],
        next=await pages.next(found, size, lambda last: (last.id,)),
    )
