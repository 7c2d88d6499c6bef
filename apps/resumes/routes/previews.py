"""A picture of a document that is being written."""

import json
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from apps.resumes import documents, previews
from apps.resumes.answers import Answer, DocumentRoute, answer
from apps.resumes.document import read
from apps.resumes.options import ExportOptions
from apps.resumes.routes.requests import PreviewBody
from batchmill.service import Reader

router = APIRouter(route_class=DocumentRoute)

BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": PreviewBody.model_json_schema()}},
    }
}


class Wanted(NamedTuple):
    """`document` is JSON that can be read."""

    document: str
    options: ExportOptions
    page: int


def wanted_in(body: bytes) -> Wanted:
    try:
        given = PreviewBody.model_validate_json(body)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        raise RequestValidationError(
            [fault | {"loc": ("body", *fault["loc"])} for fault in faults]
        ) from None
    options = given.chosen()
    read(given.document)
    return Wanted(json.dumps(given.document, ensure_ascii=False), options, given.page)


async def wanted(request: Request) -> Wanted:
    return await documents.beside(wanted_in, await request.body())


@router.post("/preview", openapi_extra=BODY)
async def show_preview(caller: Reader, asked: Annotated[Wanted, Depends(wanted)]) -> Answer:
    """A page of the document as a data URL. Nothing is stored."""
    picture = await previews.picture(caller.tenant, asked.document, asked.options, asked.page)
    return answer(
        {
            "image": f"data:image/png;base64,{picture.image}",
            "page": picture.page,
            "pageCount": picture.page_count,
            "warnings": picture.warnings,
        }
    )
