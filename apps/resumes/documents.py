"""Documents: stored as they were given, with a version that counts the changes."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from apps.resumes.document import InvalidDocument, parse, read, with_current_names
from apps.resumes.errors import StaleVersion, TooManyDocuments
from apps.resumes.mill import settings
from apps.resumes.tables import RESUMES
from batchmill import Client, NotFound

NAMELESS = "Resume"
LONGEST = 500
# In bytes or characters. A larger document is read in a thread, because it may take a part of a
# second.
SMALL = 64 * 1_024

T = TypeVar("T")


async def add(client: Client, body: bytes) -> dict[str, Any]:
    columns = await beside(columns_of, body)
    async with client.transaction() as conn:
        await RESUMES.rows(conn, "hold_count")
        row = await RESUMES.row(conn, "add_document", most=settings.max_documents, **columns)
    if row is None:
        raise TooManyDocuments(settings.max_documents)
    return row


async def change(client: Client, id: UUID, version: int, body: bytes) -> dict[str, Any]:
    columns = await beside(columns_of, body)
    row = await RESUMES.row(client, "change_document", id=id, version=version, **columns)
    if row is None:
        raise StaleVersion((await get(client, id))["version"])
    return row


async def beside(work: Callable[[Any], T], text: str | bytes) -> T:
    """Works on a document, and lets other requests go on if that takes long."""
    return work(text) if len(text) < SMALL else await asyncio.to_thread(work, text)


def columns_of(body: bytes) -> dict[str, Any]:
    """The columns of a document that can be read. Raises `InvalidDocument`."""
    data = parse(body)
    basics = read(data).basics
    return {
        "name": (basics.name or NAMELESS)[:LONGEST],
        "label": basics.label and basics.label[:LONGEST],
        "content": json.dumps(data, ensure_ascii=False, separators=(",", ":")),
    }


async def get(client: Client, id: UUID) -> dict[str, Any]:
    row = await RESUMES.row(client, "get_document", id=id)
    if row is None:
        raise no_such_document(id)
    return row


def both_views(content: str) -> dict[str, Any]:
    """`document` is what was given. `resume` is the same with the current names of fields, or None
    if it cannot be read any more."""
    document = json.loads(content)
    try:
        return {"document": document, "resume": with_current_names(document)}
    except InvalidDocument:
        return {"document": document, "resume": None}


async def newest(
    client: Client, before: tuple[datetime, UUID] | None, count: int
) -> list[dict[str, Any]]:
    created_at, before_id = before or (None, None)
    return await RESUMES.rows(
        client, "list_documents", before=created_at, before_id=before_id, count=count
    )


async def delete(client: Client, id: UUID) -> None:
    """From the first moment, no export of the document can begin."""
    if await RESUMES.row(client, "begin_deletion", id=id) is None:
        raise no_such_document(id)
    await end_deletion(client, id)


async def end_deletion(client: Client, id: UUID) -> None:
    """Can be repeated: a cleanup ends what was interrupted."""
    for export in await RESUMES.rows(client, "waiting_exports", document=id):
        # Another request may have deleted the export.
        with suppress(NotFound):
            await client.batch(export["id"]).cancel()
    await RESUMES.rows(client, "delete_document", id=id)


def no_such_document(id: UUID) -> NotFound:
    return NotFound(f"There is no document {id}.")
