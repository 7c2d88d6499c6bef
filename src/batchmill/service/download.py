"""Sending a file over HTTP: its headers, and the requested range."""

import re

from batchmill.artifacts.headers import stored_headers
from batchmill.domain.artifact import ArtifactRecord
from batchmill.errors import RangeNotSatisfiable

_CAUTION = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-cache",
}
_RANGE = re.compile(r"bytes=[ \t]*([0-9]*)[ \t]*-[ \t]*([0-9]*)[ \t]*", re.IGNORECASE)
_LONGEST_NUMBER = 19


def download_headers(record: ArtifactRecord, part: range | None = None) -> dict[str, str]:
    """`part` is the result of `parse_range`; None means the whole file."""
    headers = {
        **stored_headers(record.name, record.media_type),
        **_CAUTION,
        "Content-Length": str(record.size if part is None else len(part)),
        "ETag": etag(record),
        "Accept-Ranges": "bytes",
    }
    if part is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{record.size}"
    return headers


def archive_headers(name: str) -> dict[str, str]:
    return {**stored_headers(name, "application/zip"), **_CAUTION}


def etag(record: ArtifactRecord) -> str:
    return f'"{record.sha256}"'


def parse_range(
    header: str | None, size: int, *, etag: str | None = None, if_range: str | None = None
) -> range | None:
    """Returns the bytes that a Range header requests, or None to send the whole file.

    Ignores several ranges, other units and malformed headers, as RFC 9110 allows.
    """
    asked = _RANGE.fullmatch(header.strip()) if header else None
    if asked is None or (if_range is not None and if_range != etag):
        return None
    first, last = asked.groups()
    if (not first and not last) or max(len(first), len(last)) > _LONGEST_NUMBER:
        return None
    if first and last and int(last) < int(first):
        return None
    part = _part(first, last, size)
    if not part:
        raise RangeNotSatisfiable(size)
    return part


def _part(first: str, last: str, size: int) -> range:
    if not first:
        return range(max(size - int(last), 0), size)
    return range(int(first), min(int(last) + 1, size) if last else size)
