"""Documents: create, read, change, delete, and the picture of the first page."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic_core import to_json

from apps.resumes import documents, previews
from apps.resumes.answers import Answer, DocumentRoute, answer
from apps.resumes.options import TemplateSlug
from apps.resumes.routes.pages import Before, Count, place_of, split
from apps.resumes.views import document_view
from batchmill.service import Reader, Submitter

router = APIRouter(prefix="/documents", route_class=DocumentRoute)

DOCUMENT = "/{id}"
JSON = "application/json"
BODY = {"requestBody": {"required": True, "content": {JSON: {}}}}
Version = Annotated[
    int, Query(ge=1, le=2**31 - 1, description="The version that the change is based on.")
]


@router.post("", status_code=201, openapi_extra=BODY)
async def add_document(request: Request, caller: Submitter) -> Answer:
    return answer(document_view(await documents.add(caller.client, await request.body())))


@router.get("")
async def list_documents(caller: Reader, before: Before, count: Count = 50) -> Answer:
    """The newest documents. `next` is the value of `before` for the next page."""
    found = await documents.newest(caller.client, before, count + 1)
    rows, following = split(found, count, place_of)
    return answer({"documents": [document_view(row) for row in rows], "next": following})


@router.get(DOCUMENT, response_class=Response)
async def get_document(caller: Reader, id: UUID) -> Response:
    """`document` is what was given, and `resume` the same with the current names of fields."""
    row = await documents.get(caller.client, id)

    def written(content: str) -> bytes:
        return to_json(answer(document_view(row) | documents.both_views(content)))

    return Response(await documents.beside(written, row["content"]), media_type=JSON)


@router.put(DOCUMENT, openapi_extra=BODY)
async def change_document(
    request: Request, caller: Submitter, id: UUID, version: Version
) -> Answer:
    changed = await documents.change(caller.client, id, version, await request.body())
    return answer(document_view(changed))


@router.delete(DOCUMENT)
async def delete_document(caller: Submitter, id: UUID) -> Answer:
    """Also cancels the exports of the document that have not started. The history stays."""
    await documents.delete(caller.client, id)
    return answer()


@router.get(DOCUMENT + "/thumbnail", response_class=Response)
async def get_thumbnail(
    caller: Reader,
    id: UUID,
    template: TemplateSlug = "minimal",
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """The first page as a PNG."""
    document = await documents.get(caller.client, id)
    tag = f'"{previews.thumbnail_key(document, template)}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if tag in (if_none_match or ""):
        return Response(status_code=304, headers=headers)
    image = await previews.thumbnail(caller.tenant, document, template)
    return Response(image, media_type="image/png", headers=headers)
