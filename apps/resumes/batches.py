"""Exports that were requested together: their common state, and their files as one ZIP."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from apps.resumes.errors import BatchNotFinished, ExportExpired
from apps.resumes.exports import Begun, begin_all, error_of, exports_of, mean_progress
from apps.resumes.options import ExportOptions
from apps.resumes.tables import RESUMES
from batchmill import Client, NotFound

MOST = 10


class ExportBatch(NamedTuple):
    """`exports` has a row for each requested document, so a row may be there twice. Old exports are
    forgotten, but count in the `total`."""

    id: UUID
    created_at: datetime
    total: int
    exports: list[dict[str, Any]]

    @property
    def completed(self) -> list[dict[str, Any]]:
        return self.with_status("completed")

    @property
    def is_finished(self) -> bool:
        return not self.with_status("pending", "processing")

    @property
    def status(self) -> str:
        return status_of([each["status"] for each in self.exports])

    @property
    def progress(self) -> float:
        return mean_progress(each["progress"] for each in self.exports)

    def with_status(self, *statuses: str) -> list[dict[str, Any]]:
        return [each for each in self.exports if each["status"] in statuses]


def status_of(statuses: Sequence[str]) -> str:
    """The status of exports together. `partial`: all have ended, and some have completed."""
    different = set(statuses)
    if len(different) == 1:
        return statuses[0]
    if different & {"pending", "processing"}:
        return "processing"
    return "partial" if "completed" in different else "failed"


async def begin(
    client: Client, documents: Sequence[UUID], options: ExportOptions
) -> tuple[UUID, list[Begun]]:
    """Begins all exports, or none."""
    async with client.transaction() as conn:
        begun = await begin_all(client, conn, documents, options)
        batch = await RESUMES.value(conn, "add_batch", total=len(begun))
        await RESUMES.rows(conn, "add_to_batch", batch=batch, exports=[each.id for each in begun])
    return batch, begun


async def get(client: Client, id: UUID) -> ExportBatch:
    found = await newest(client, id=id)
    if not found:
        raise NotFound(f"There is no batch {id}.")
    return found[0]


async def newest(
    client: Client,
    *,
    id: UUID | None = None,
    before: tuple[datetime, UUID] | None = None,
    count: int = 1,
) -> list[ExportBatch]:
    """The newest batches, or the one with this id. A batch is forgotten with its last export."""
    created_at, before_id = before or (None, None)
    found = await RESUMES.rows(
        client, "list_batches", id=id, before=created_at, before_id=before_id, count=count
    )
    ids = {export for batch in found for export in batch["exports"]}
    rows = {row["id"]: row for row in await exports_of(client, ids=[*ids], count=len(ids))}
    batches = (
        ExportBatch(
            batch["id"],
            batch["created_at"],
            batch["total"],
            [rows[it] for it in batch["exports"] if it in rows],
        )
        for batch in found
    )
    return [batch for batch in batches if batch.exports]


async def zip_of(client: Client, id: UUID, *, partial: bool) -> AsyncGenerator[bytes]:
    """The PDFs of a batch, and a manifest that says what is missing and why."""
    batch = await get(client, id)
    if not batch.is_finished and not partial:
        raise BatchNotFinished([each["id"] for each in batch.completed], batch.total)
    there = {each["id"]: each for each in batch.completed if not each["is_expired"]}
    if batch.is_finished and batch.completed and not there:
        raise ExportExpired

    def manifest(names: list[str | None]) -> dict[str, Any]:
        return manifest_of(batch, dict(zip(there, names, strict=True)))

    files = [(each["artifact"], each["file_name"]) for each in there.values()]
    return await client.artifacts.zip(files, manifest)


def manifest_of(batch: ExportBatch, names: dict[UUID, str | None]) -> dict[str, Any]:
    """`names` are the names of the files in the ZIP."""
    return {
        "batchId": batch.id,
        "status": batch.status,
        "totalCount": batch.total,
        "completedCount": len(batch.completed),
        "createdAt": batch.created_at,
        "exports": [
            {
                "jobId": each["id"],
                "documentId": each["document_id"],
                "documentName": each["document_name"],
                "documentVersion": each["document_version"],
                "status": each["status"],
                "file": names.get(each["id"]),
                "pageCount": each["page_count"],
                "warnings": each["warnings"] or [],
                "error": error_of(each) or missing(each, names),
            }
            for each in batch.exports
        ],
    }


def missing(export: dict[str, Any], names: dict[UUID, str | None]) -> dict[str, str] | None:
    """Why a completed export has no file here."""
    if export["status"] != "completed" or names.get(export["id"]):
        return None
    return {"code": "EXPORT_EXPIRED", "message": "The export has expired or was deleted."}
