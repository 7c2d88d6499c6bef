"""Which texts may become links. Everything else stays text: `javascript:`, `file:`, `data:`."""

import re
from urllib.parse import quote, urlsplit

# Browsers remove these from a URL before they read its scheme.
SPACE_OR_CONTROL = re.compile(r"[\s\x00-\x20\x7f-\x9f\\]")
BARE_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,24}(?:[/?#].*)?", re.I)
EMAIL = re.compile(
    r"[^\s@<>()\[\],;:\"\\]{1,64}@(?:[^\s@<>()\[\],;:\"\\./]{1,63}\.)+[^\s@<>()\[\],;:\"\\./]{2,63}"
)
MAX_EMAIL = 254


def safe_link(text: str | None) -> str | None:
    """The address to which a text may link. A bare host, as in `example.com/me`, means https."""
    if not text or SPACE_OR_CONTROL.search(text):
        return None
    if BARE_HOST.fullmatch(text):
        return f"https://{text}"
    scheme, _, rest = text.partition(":")
    match scheme.lower():
        case "mailto":
            return mail_link(rest)
        case "http" | "https" if has_host(text):
            return text
        case _:
            return None


def has_host(url: str) -> bool:
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False


def is_email(text: str) -> bool:
    return len(text) <= MAX_EMAIL and EMAIL.fullmatch(text) is not None


def mail_link(address: str | None) -> str | None:
    if address is None or not is_email(address):
        return None
    return f"mailto:{quote(address, safe='@+')}"
