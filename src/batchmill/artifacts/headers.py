"""The response headers of a stored file. They prevent a browser from executing it."""

from urllib.parse import quote

from batchmill.domain.artifact import UNKNOWN_TYPE, safe_name

# These types cannot contain scripts. All other types are sent as an unknown type.
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

# Characters that RFC 5987 allows unescaped.
_PLAIN = "!#$&+-.^_`|~"


def stored_headers(name: str, media_type: str) -> dict[str, str]:
    """Headers that an object store keeps with the file and sends itself."""
    return {"Content-Disposition": disposition(name), "Content-Type": served_type(media_type)}


def served_type(media_type: str) -> str:
    if media_type not in SAFE_TYPES:
        return UNKNOWN_TYPE
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type


def disposition(name: str) -> str:
    """Clients that support RFC 6266 use the second name; older clients use the first."""
    name = safe_name(name)
    plain = "".join(c if " " <= c <= "~" and c not in '"\\%' else "_" for c in name)
    if plain == name:
        return f'attachment; filename="{name}"'
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe=_PLAIN)}"
