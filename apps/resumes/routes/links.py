"""Links to the files of exports. They are signed when they are read, and never stored."""

from typing import Any
from uuid import UUID

from fastapi import Request

from apps.resumes import exports
from apps.resumes.stream import Link
from apps.resumes.views import export_view
from batchmill.service import Caller, signed_url

LINK_SECONDS = 3_600


async def link_to(request: Request, caller: Caller, file: UUID) -> str:
    """Works without a key for an hour."""
    return await signed_url(request, caller, "batchmill.download_artifact", LINK_SECONDS, id=file)


async def link_of(request: Request, caller: Caller, row: dict[str, Any]) -> str | None:
    if row["artifact"] is None or row["is_expired"]:
        return None
    return await link_to(request, caller, row["artifact"])


async def shown(request: Request, caller: Caller, row: dict[str, Any]) -> dict[str, Any]:
    """The view of an export, with a link to its file."""
    return export_view(row, await link_of(request, caller, row))


def links(request: Request, caller: Caller) -> Link:
    """For streams, which know only the id of an export."""

    async def link(id: UUID) -> str | None:
        rows = await exports.exports_of(caller.client, ids=[id])
        return await link_of(request, caller, rows[0]) if rows else None

    return link
