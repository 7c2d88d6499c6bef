"""Which answers are HTML pages, and which addresses can not be."""

import re
from pathlib import PurePosixPath
from urllib.parse import urlsplit

_HTML = ("text/html", "application/xhtml+xml")
# What bytes look like that may still be HTML, if the server says so: text in any encoding.
_MAYBE_HTML = (
    "application/json",
    "application/octet-stream",
    "application/xml",
    "image/svg+xml",
    "text/html",
    "text/plain",
)
_FILE = re.compile(
    r"\.(?:7z|aac|apk|avif?|bin|bmp|css|csv|dmg|docx?|eot|eps|epub|exe|flac|gif|gz|heic|ico|ics|iso"
    r"|jpe?g|m?js|json|m4[av]|map|mkv|mov|mp[34]|mpe?g|msi|od[pst]|og[gv]|otf|pdf|png|pptx?|ps|rar"
    r"|rtf|svg|t?gz|tar|tiff?|ttf|txt|vcf|wav|webm|webmanifest|webp|wmv|woff2?|xlsx?|xml|xz|zip)",
    re.IGNORECASE,
)


def is_html(declared: str | None, detected: str) -> bool:
    """`declared` is the server's Content-Type, `detected` the media type of the first bytes."""
    name = (declared or "").partition(";")[0].strip().lower()
    if not name:
        return detected == "text/html"
    return name in _HTML and detected in _MAYBE_HTML


def file_extension(address: str) -> str | None:
    """The extension of an address that names a file which is no page."""
    extension = PurePosixPath(urlsplit(address).path).suffix
    return extension.lower() if _FILE.fullmatch(extension) else None
