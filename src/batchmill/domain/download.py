"""How a file is served: never as something a browser would run."""

import re
from urllib.parse import quote

from batchmill.domain.artifact import UNKNOWN_TYPE, ArtifactRecord, safe_name
from batchmill.errors import RangeNotSatisfiable

# Nothing here can carry a script; of all else a browser is told nothing.
SAFE_TYPES = frozenset(
    {
        "application/epub+zip",
        "application/gzip",
        "application/json",
        "application/msword",
        "application/pdf",
        "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint",
        "application/vnd.oasis.opendocument.spreadsheet",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/x-ndjson",
        "application/x-tar",
        "application/zip",
        "audio/aac",
        "audio/flac",
        "audio/mp4",
        "audio/mpeg",
        "audio/ogg",
        "audio/wav",
        "audio/webm",
        "audio/x-wav",
        "image/avif",
        "image/bmp",
        "image/gif",
        "image/heic",
        "image/jpeg",
        "image/png",
        "image/tiff",
        "image/webp",
        "text/calendar",
        "text/csv",
        "text/markdown",
        "text/plain",
        "text/tab-separated-values",
        "text/vtt",
        "video/mp4",
        "video/mpeg",
        "video/ogg",
        "video/quicktime",
        "video/webm",
    }
)

_CAUTION = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-cache",
}
_RANGE = re.compile(r"bytes=[ \t]*([0-9]*)[ \t]*-[ \t]*([0-9]*)[ \t]*", re.IGNORECASE)
_LONGEST_NUMBER = 19
# What RFC 5987 lets stand as it is.
_PLAIN = "!#$&+-.^_`|~"


def download_headers(record: ArtifactRecord, part: range | None = None) -> dict[str, str]:
    """`part` is what `parse_range` gave; None means all of it."""
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


def stored_headers(name: str, media_type: str) -> dict[str, str]:
    """What an object store keeps with the file and sends along by itself."""
    return {"Content-Disposition": disposition(name), "Content-Type": served_type(media_type)}


def served_type(media_type: str) -> str:
    if media_type not in SAFE_TYPES:
        return UNKNOWN_TYPE
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type


def etag(record: ArtifactRecord) -> str:
    return f'"{record.sha256}"'


def disposition(name: str) -> str:
    """For every client something: those that know RFC 6266 take the second name."""
    name = safe_name(name)
    plain = "".join(c if " " <= c <= "~" and c not in '"\\%' else "_" for c in name)
    if plain == name:
        return f'attachment; filename="{name}"'
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe=_PLAIN)}"


def parse_range(
    header: str | None, size: int, *, etag: str | None = None, if_range: str | None = None
) -> range | None:
    """The bytes that a Range header asks for; None where all are to be sent.

    Several ranges, other units and what cannot be read are ignored, as RFC 9110 allows.
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
