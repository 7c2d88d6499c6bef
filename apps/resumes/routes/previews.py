"""A picture of a document that is being written."""

import json

from fastapi import APIRouter

from apps.resumes import previews
from apps.resumes.answers import Answer, DocumentRoute, answer
from apps.resumes.document import read
from apps.resumes.routes.requests import PreviewBody
from batchmill.service import Reader

router = APIRouter(route_class=DocumentRoute)


@router.post("/preview")
async def show_preview(caller: Reader, body: PreviewBody) -> Answer:
    """A page of the document as a data URL. Nothing is stored."""
    options = body.chosen()
    read(body.document)
    text = json.dumps(body.document, ensure_ascii=False)
    picture = await previews.picture(caller.tenant, text, options, body.page)
    return answer(
        {
            "image": f"data:image/png;base64,{picture.image}",
            "page": picture.page,
            "pageCount": picture.page_count,
            "warnings": picture.warnings,
        }
    )
