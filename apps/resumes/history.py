"""The history: finished exports, their downloads, and how they are deleted."""

from datetime import datetime
from typing import Any
from uuid import UUID

from apps.resumes import exports
from apps.resumes.cleanup import release
from apps.resumes.errors import ExportExpired, NotFinished, StillStopping
from apps.resumes.settings import KEPT
from apps.resumes.tables import RESUMES
from batchmill import Client


async def page(
    client: Client, before: tuple[datetime, UUID] | None, count: int
) -> list[dict[str, Any]]:
    return await exports.exports_of(
        client, status="completed", listed=True, before=before, count=count
    )


async def download(client: Client, id: UUID) -> UUID:
    """Counts a download and returns the file."""
    file = await RESUMES.value(client, "count_download", id=id, kept=KEPT)
    if file is not None:
        return file
    found = await exports.get(client, id)
    if found["status"] != "completed":
        raise NotFinished(found["status"])
    raise ExportExpired


async def delete(client: Client, id: UUID) -> None:
    """Deletes the file of an export that has ended, and removes it from the history. A cleanup ends
    what was interrupted."""
    closed = await RESUMES.rows(client, "close_exports", ids=[id], kept=KEPT, is_deleted=True)
    if closed or await RESUMES.rows(client, "hide_closed", id=id):
        await release(client, id)
        return
    status = (await exports.get(client, id))["status"]
    raise StillStopping(status) if status in exports.ENDED else NotFinished(status)
