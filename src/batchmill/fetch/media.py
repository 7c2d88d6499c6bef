"""Detects media types from the bytes. The type that a server declares is not trusted."""

import re

# The number of bytes that detection needs.
SNIFFED = 512

_UNKNOWN = "application/octet-stream"

_BEGINNINGS = (
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"BM", "image/bmp"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"{\\rtf", "application/rtf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"\x7fELF", "application/x-elf"),
    (b"MZ", "application/vnd.microsoft.portable-executable"),
    (b"\x00asm", "application/wasm"),
    (b"ID3", "audio/mpeg"),
    (b"OggS\x00", "application/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
)
# Signatures that are not at the start: the offset, the bytes there, the type.
_INSIDE = (
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftyp", "video/mp4"),
    (257, b"ustar", "application/x-tar"),
)

# Their signatures are only two bytes, with which a text may begin too.
_NEEDS_BINARY = {"image/bmp", "application/vnd.microsoft.portable-executable"}

_MARKUP = (
    (re.compile(rb"<(!doctype html|html|head|body|script|title|table|div|h1|p)[\s>]"), "text/html"),
    (re.compile(rb"(<\?xml[^>]*>\s*)?<svg[\s>]"), "image/svg+xml"),
    (re.compile(rb"<\?xml\s"), "application/xml"),
)
_JSON = re.compile(rb'\{\s*("|\}|$)|\[\s*(["\{\[\]\-0-9]|true|false|null|$)')
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


def sniff(head: bytes) -> str:
    """The media type of a file that begins with these bytes."""
    return _by_signature(head) or _by_text(head) or _UNKNOWN


def _by_signature(head: bytes) -> str | None:
    for beginning, kind in _BEGINNINGS:
        if head.startswith(beginning) and not (kind in _NEEDS_BINARY and _is_text(head)):
            return kind
    return next((kind for at, bytes_, kind in _INSIDE if head.startswith(bytes_, at)), None)


def _by_text(head: bytes) -> str | None:
    if head.startswith(_BYTE_ORDER_MARKS):
        return "text/plain"
    if not head or not _is_text(head):
        return None
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for pattern, kind in _MARKUP:
        if pattern.match(text):
            return kind
    return "application/json" if _JSON.match(text) else "text/plain"


def _is_text(head: bytes) -> bool:
    """Accepts old encodings too: any bytes except those that never occur in text."""
    return not _CONTROL.search(head)
