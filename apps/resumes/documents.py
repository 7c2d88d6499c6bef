"""Documents: stored as they were given, with a version that counts the changes."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.resumes.document import InvalidDocument, parse, read
from apps.resumes.errors import StaleVersion, TooManyDocuments
from apps.resumes.mill import settings
from apps.resumes.tables import RESUMES
from batchmill import Client, NotFound

NAMELESS = "Resume"
LONGEST = 500


async def add(client: Client, body: bytes) -> dict[str, Any]:
    row = await RESUMES.row(client, "add_document", most=settings.max_documents, **columns_of(body))
    if row is None:
        raise TooManyDocuments(settings.max_documents)
    return row


async def change(client: Client, id: UUID, version: int, body: bytes) -> dict[str, Any]:
    columns = columns_of(body)
    row = await RESUMES.row(client, "change_document", id=id, version=version, **columns)
    if row is None:
        raise StaleVersion((await get(client, id))["version"])
    return row


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


def resume_of(content: Any) -> dict[str, Any] | None:
    """The document with the current names of fields; None if it cannot be read any more."""
    try:
        return read(content).as_json()
    except InvalidDocument:
        return None


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
        await client.batch(export["id"]).cancel()
    await RESUMES.rows(client, "delete_document", id=id)


def no_such_document(id: UUID) -> NotFound:
    return NotFound(f"There is no document {id}.")
