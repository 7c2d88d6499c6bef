"""Documents, exports and batches as the API shows them."""

from typing import Any
from uuid import UUID

from apps.resumes.batches import ExportBatch
from apps.resumes.exports import Begun, error_of

API = "/api/v1"


def document_view(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "name": row["name"],
        "label": row["label"],
        "version": row["version"],
        "createdAt": row["created_at"],
        "updatedAt": row["updated_at"],
    }


def begun_view(begun: Begun, row: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request. An export that is reused is kept longer from now on."""
    return {
        "jobId": begun.id,
        "documentId": begun.document,
        "status": row["status"],
        "reused": begun.is_reused,
        "expiresAt": row["expires_at"],
        "streamUrl": stream_url(begun.id),
    }


def export_view(row: dict[str, Any], link: str | None) -> dict[str, Any]:
    """`link` is the signed link to the file, if there is one."""
    return {
        "id": row["id"],
        "status": row["status"],
        "progress": row["progress"] or 0,
        "resultUrl": link,
        "error": error_of(row),
        "documentId": row["document_id"],
        "documentVersion": row["document_version"],
        "documentName": row["document_name"],
        "templateSlug": row["template"],
        "fileName": row["file_name"],
        "fileSize": row["file_size"],
        "pageCount": row["page_count"],
        "warnings": row["warnings"] or [],
        "createdAt": row["created_at"],
        "finishedAt": row["finished_at"],
        **expiry_view(row),
        "lastEventId": row["last_event"],
        "streamUrl": stream_url(row["id"]),
    }


def history_view(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "documentId": row["document_id"],
        "documentVersion": row["document_version"],
        "documentName": row["document_name"],
        "format": "pdf",
        "templateSlug": row["template"],
        "fileName": row["file_name"],
        "fileSize": row["file_size"],
        "pageCount": row["page_count"],
        "downloadCount": row["download_count"],
        "createdAt": row["created_at"],
        "finishedAt": row["finished_at"],
        **expiry_view(row),
        "downloadUrl": f"{API}/export/download/{row['id']}",
    }


def expiry_view(row: dict[str, Any]) -> dict[str, Any]:
    """`expiredAt` is None while the file is there."""
    expired_at = (row["closed_at"] or row["expires_at"]) if row["is_expired"] else None
    return {"expiresAt": row["expires_at"], "expiredAt": expired_at}


def batch_view(batch: ExportBatch, exports: list[dict[str, Any]]) -> dict[str, Any]:
    """`exports` are the views of its exports."""
    return {
        "id": batch.id,
        "status": batch.status,
        "progress": batch.progress,
        "totalCount": batch.total,
        "completedCount": len(batch.with_status("completed")),
        "failedCount": len(batch.with_status("failed")),
        "cancelledCount": len(batch.with_status("cancelled")),
        "jobs": exports,
        "createdAt": batch.created_at,
        "streamUrl": batch_stream_url(batch.id),
        "downloadUrl": f"{API}/export/batch/{batch.id}/download",
    }


def stream_url(id: UUID) -> str:
    return f"{API}/export/job/{id}/stream"


def batch_stream_url(id: UUID) -> str:
    return f"{API}/export/batch/{id}/stream"
