"""The history: finished exports, their downloads, and the cleanup."""

from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from apps.resumes import history
from apps.resumes.answers import Answer, ApiRoute, answer
from apps.resumes.cleanup import clean_up
from apps.resumes.mill import mill
from apps.resumes.routes.links import link_to
from apps.resumes.routes.pages import Before, Count, place_of, split
from apps.resumes.views import history_view
from batchmill.service import Administrator, Reader, Submitter

router = APIRouter(prefix="/export", route_class=ApiRoute)

# An admin key of this tenant belongs to the operator.
OPERATOR = "default"


@router.get("/history")
async def list_history(caller: Reader, before: Before, count: Count = 50) -> Answer:
    """Completed exports, newest first. `next` is the value of `before` for the next page."""
    found = await history.page(caller.client, before, count + 1)
    rows, following = split(found, count, place_of)
    return answer({"history": [history_view(row) for row in rows], "next": following})


@router.delete("/history/{id}")
async def delete_export(caller: Submitter, id: UUID) -> Answer:
    """Deletes the file, which frees its storage at once."""
    await history.delete(caller.client, id)
    return answer()


@router.get("/download/{id}", response_class=Response)
async def download_export(request: Request, caller: Reader, id: UUID) -> Response:
    """Counts the download, and redirects to a link that works for an hour."""
    file = await history.download(caller.client, id)
    return RedirectResponse(await link_to(request, caller, file), 302)


@router.post("/cleanup")
async def clean_up_now(caller: Administrator) -> Answer:
    """Deletes expired exports: those of all users for the operator, otherwise one's own."""
    client = mill if caller.tenant == OPERATOR else caller.client
    return answer({"deleted": await clean_up(client)})
