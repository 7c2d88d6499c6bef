"""The application's own errors.

    TooManyDocuments      409, with `used` and `limit`
    StaleVersion          409, with the current `version`
    AlreadyEnded          409, with `status`: too late to cancel
    NotFinished           409, with `status`: the export has no file
    StillStopping         409, with `status`: it is cancelled, but has not stopped yet
    BatchNotFinished      409, with `completedCount`, `totalCount` and `completedJobs`
    ExportExpired         410: the file was deleted
    TooManyExports        429, with `used` and `limit`: the quota of the user
    PreviewBusy           429: others are being made already
    PreviewTooSlow        503: the server has too much to do

Each has a code for programs and a sentence for people. `facts` is more about it, for programs.
"""

from typing import Any
from uuid import UUID

from batchmill import Conflict, LinkExpired, QuotaExceeded, ServerBusy


class TooManyDocuments(Conflict):
    code = "TOO_MANY_DOCUMENTS"

    def __init__(self, limit: int):
        self.facts: dict[str, Any] = {"used": limit, "limit": limit}
        super().__init__(f"There are {limit} documents already, which is the limit. Delete one.")


class StaleVersion(Conflict):
    code = "STALE_VERSION"

    def __init__(self, current: int):
        self.facts: dict[str, Any] = {"version": current}
        super().__init__(
            f"The document has changed: its version is {current} now. Read it again, then repeat "
            "your change."
        )


class AlreadyEnded(Conflict):
    code = "ALREADY_ENDED"

    def __init__(self, status: str):
        self.facts: dict[str, Any] = {"status": status}
        super().__init__(f"The export cannot be cancelled, because it is {status}.")


class NotFinished(Conflict):
    code = "NOT_FINISHED"

    def __init__(self, status: str):
        self.facts: dict[str, Any] = {"status": status}
        super().__init__(f"The export has no file, because it is {status}.")


class StillStopping(Conflict):
    code = "NOT_FINISHED"

    def __init__(self, status: str):
        self.facts: dict[str, Any] = {"status": status}
        super().__init__("The export is still being stopped. Try again in a few seconds.")


class BatchNotFinished(Conflict):
    code = "NOT_FINISHED"

    def __init__(self, completed: list[UUID], total: int):
        self.facts: dict[str, Any] = {
            "completedCount": len(completed),
            "totalCount": total,
            "completedJobs": completed,
        }
        super().__init__(
            f"{len(completed)} of {total} exports are completed. Wait for the others, or add "
            "partial=true."
        )


class ExportExpired(LinkExpired):
    code = "EXPORT_EXPIRED"

    def __init__(self) -> None:
        super().__init__("The export has expired or was deleted. Export the document again.")


class TooManyExports(QuotaExceeded):
    """Replaces an error of the engine, which counts the exports that the refused request itself
    has begun: `begun`."""

    code = "QUOTA_EXCEEDED"

    def __init__(self, error: QuotaExceeded, begun: int):
        assert error.used is not None and error.limit is not None
        used, limit = error.used - begun, error.limit
        left = max(0, limit - used)
        # Only the quota of a day ends at a known time.
        each = "a day" if error.retry_after is not None else "at once"
        super().__init__(
            f"You can begin {limit:,} exports {each}. {used:,} are used and {left:,} are left.",
            used=used,
            limit=limit,
            retry_after=error.retry_after,
        )


class PreviewBusy(QuotaExceeded):
    code = "PREVIEW_BUSY"

    def __init__(self, waiting: int):
        super().__init__(
            f"{waiting} previews are being made already. Wait for one of them.", retry_after=1
        )


class PreviewTooSlow(ServerBusy):
    code = "PREVIEW_TOO_SLOW"

    def __init__(self) -> None:
        super().__init__("The preview takes too long. Try again later.")
