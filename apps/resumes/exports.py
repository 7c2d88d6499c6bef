"""Exports: begun or shared, read, and cancelled."""

import hashlib
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection

from apps.resumes.documents import NAMELESS, no_such_document
from apps.resumes.errors import AlreadyEnded, TooManyExports
from apps.resumes.models import Export
from apps.resumes.options import ExportOptions
from apps.resumes.settings import BATCH_KEPT, KEPT
from apps.resumes.tables import RESUMES
from apps.resumes.tasks import export
from batchmill import (
    Client,
    Event,
    Feed,
    NotFound,
    QuotaExceeded,
    StorageExceeded,
    TenantBusy,
    safe_name,
)

LABEL, APPLICATION = "application", "resumes"
# With the dots of folders: a name such as `../../x` means none.
SEPARATORS = re.compile(r"[/\\.]*[/\\][/\\.]*")
# In the message of the engine.
NO_ROOM = StorageExceeded.code.upper()
BYTES = re.compile(r"(?P<used>[\d,]+) of (?P<limit>[\d,]+) bytes")
ENDED = ("completed", "failed", "cancelled")


class Begun(NamedTuple):
    """`is_reused`: an earlier request began the export."""

    id: UUID
    document: UUID
    is_reused: bool


async def begin(client: Client, document: UUID, options: ExportOptions) -> Begun:
    async with client.transaction() as conn:
        (begun,) = await begin_all(client, conn, [document], options)
    return begun


async def begin_all(
    client: Client, conn: AsyncConnection[Any], ids: Sequence[UUID], options: ExportOptions
) -> list[Begun]:
    """Begins an export of each document, or shares one that does the same, in the caller's
    transaction. All documents are locked before the first export begins, so any number of requests
    at once begin one export."""
    held = await RESUMES.rows(conn, "hold_documents", ids=[*ids])
    documents = {row["id"]: row for row in held}
    for id in ids:
        if id not in documents:
            raise no_such_document(id)
    begun: dict[UUID, Begun] = {}
    for id, document in documents.items():
        try:
            begun[id] = await begin_or_share(client, conn, document, options)
        except (StorageExceeded, TenantBusy):
            raise
        except QuotaExceeded as error:
            raise TooManyExports(error, sum(not it.is_reused for it in begun.values())) from None
    return [begun[id] for id in ids]


async def begin_or_share(
    client: Client, conn: AsyncConnection[Any], document: dict[str, Any], options: ExportOptions
) -> Begun:
    id, fingerprint = document["id"], fingerprint_of(document, options)
    shared = await RESUMES.value(conn, "share_export", fingerprint=fingerprint, kept=KEPT)
    if shared is not None:
        return Begun(shared, id, True)
    await require_storage(conn)
    file_name = file_name_of(document["name"])
    payload = Export(document=document["content"], options=options, file_name=file_name)
    batch = await client.submit(
        export, [payload], connection=conn, labels={LABEL: APPLICATION}, expires_in=BATCH_KEPT
    )
    await RESUMES.rows(
        conn,
        "add_export",
        id=batch.id,
        document=id,
        version=document["version"],
        name=document["name"],
        template=options.template,
        fingerprint=fingerprint,
        file_name=file_name,
    )
    return Begun(batch.id, id, False)


def fingerprint_of(document: dict[str, Any], options: ExportOptions) -> str:
    text = f"{document['id']} {document['version']} {options.canonical()}"
    return hashlib.sha256(text.encode()).hexdigest()


def file_name_of(name: str) -> str:
    """Names of persons may contain anything, such as `../../x` and `MD/PhD`."""
    plain = SEPARATORS.sub("-", name).strip(" -")
    return safe_name(f"{safe_name(plain or NAMELESS)}.pdf")


async def require_storage(conn: AsyncConnection[Any]) -> None:
    """Refuses at once what would fail later: without room, no file can be stored."""
    room = await RESUMES.row(conn, "storage_left")
    assert room is not None
    used, limit = room["stored_bytes"], room["storage_bytes"]
    if limit is not None and used >= limit:
        raise StorageExceeded(used=used, limit=limit)


async def exports_of(
    client: Client,
    *,
    ids: Sequence[UUID] | None = None,
    status: str | None = None,
    listed: bool = False,
    before: tuple[datetime, UUID] | None = None,
    count: int = 50,
) -> list[dict[str, Any]]:
    """Rows of the newest exports that match. With `listed`, without those that were deleted."""
    created_at, before_id = before or (None, None)
    return await RESUMES.rows(
        client,
        "list_exports",
        ids=None if ids is None else [*ids],
        status=status,
        listed=listed,
        before=created_at,
        before_id=before_id,
        count=count,
        kept=KEPT,
    )


async def get(client: Client, id: UUID) -> dict[str, Any]:
    found = await exports_of(client, ids=[id])
    if not found:
        raise NotFound(f"There is no export {id}.")
    return found[0]


async def cancel(client: Client, id: UUID) -> dict[str, Any]:
    """Cancels an export that waits or runs. Can be repeated."""
    found = await get(client, id)
    if found["status"] not in ENDED:
        await client.batch(id).cancel()
        found = await get(client, id)
    if found["status"] != "cancelled":
        raise AlreadyEnded(found["status"])
    return found


def feed_of(client: Client) -> Feed:
    """The events of all exports of the user."""
    return client.feed(LABEL, APPLICATION)


async def log_before(client: Client, id: UUID, number: int) -> AsyncIterator[Event]:
    for row in await RESUMES.rows(client, "events_before", id=id, number=number):
        yield Event(batch_id=id, **row)


def error_of(row: dict[str, Any]) -> dict[str, Any] | None:
    return row["error"] and error_view(row["error"])


def error_view(error: Mapping[str, Any]) -> dict[str, Any]:
    """Why an export failed: a code and a sentence, without the details for operators. Without room
    for the file, also how much was `used`, and the `limit`."""
    code, message = error["code"].upper(), error["message"]
    return {"code": code, "message": message, **(room_in(message) if code == NO_ROOM else {})}


def room_in(message: str) -> dict[str, int]:
    found = BYTES.search(message)
    numbers = found.groupdict() if found else {}
    return {name: int(text.replace(",", "")) for name, text in numbers.items()}


def mean_progress(progress: Iterable[float | None]) -> float:
    values = [each or 0 for each in progress]
    return round(sum(values) / len(values), 1)
