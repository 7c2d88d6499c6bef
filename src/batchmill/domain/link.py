"""Signed links and tokens: what a signature covers, and when it is valid.

A signature covers the exact characters that are sent, never a value parsed from them. Otherwise, a
value that can be written in two ways would give a second valid link.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from batchmill.errors import InvalidLink, LinkExpired

_LINK = "link"
_TEXT = "text"


@dataclass(frozen=True, slots=True)
class SigningKey:
    id: int
    secret: bytes = field(repr=False)


class Verified(NamedTuple):
    """A text that was signed, and the seconds until it expires; None if it does not expire."""

    text: str
    seconds_left: float | None


def sign_link(key: SigningKey, method: str, path: str, tenant: str, expires: int) -> dict[str, str]:
    """Returns the query parameters that turn a path into a signed link."""
    query = {"tenant": tenant, "expires": str(expires), "key": str(key.id)}
    return query | {"signature": _signature(key, _LINK, method, path, *query.values())}


def verify_link(
    keys: Iterable[SigningKey], method: str, path: str, query: Mapping[str, str], now: float
) -> Verified:
    """Verifies a link and returns its tenant."""
    try:
        tenant, expires, key_id = query["tenant"], query["expires"], query["key"]
        signature = query["signature"]
    except KeyError as missing:
        raise InvalidLink(
            f"The link has no parameter {missing.args[0]}. Request a new link."
        ) from None
    signed = (_LINK, method, path, tenant, expires, key_id)
    _verify(keys, key_id, signature, *signed)
    return Verified(tenant, _seconds_left(expires, now))


def sign_text(key: SigningKey, purpose: str, text: str, expires: int | None = None) -> str:
    """Returns a token that contains a text, for example the position where a page ends."""
    carried = urlsafe_b64encode(text.encode()).decode().rstrip("=")
    until = "" if expires is None else str(expires)
    signature = _signature(key, _TEXT, purpose, carried, until, str(key.id))
    return f"{carried}.{until}.{key.id}.{signature}"


def check_text(keys: Iterable[SigningKey], purpose: str, token: str, now: float) -> Verified:
    parts = token.split(".")
    if len(parts) != 4:
        raise InvalidLink("This token was not issued by this service.")
    carried, until, key_id, signature = parts
    _verify(keys, key_id, signature, _TEXT, purpose, carried, until, key_id)
    seconds_left = _seconds_left(until, now) if until else None
    text = urlsafe_b64decode(carried + "=" * (-len(carried) % 4)).decode()
    return Verified(text, seconds_left)


def _verify(keys: Iterable[SigningKey], key_id: str, signature: str, *signed: str) -> None:
    """An unknown key takes the same time and gives the same message as a wrong signature."""
    found = next((key for key in keys if str(key.id) == key_id), None)
    expected = _signature(found or SigningKey(0, b""), *signed)
    if not hmac.compare_digest(_bytes(expected), _bytes(signature)) or found is None:
        raise InvalidLink(
            "The signature does not match. Use the link or token exactly as it was issued."
        )


def _seconds_left(expires: str, now: float) -> float:
    if int(expires) <= now:
        raise LinkExpired("The link or token has expired. Request a new one.")
    return int(expires) - now


def _signature(key: SigningKey, *parts: str) -> str:
    """Prefixes each part with its length, so that different lists never give the same text."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    digest = hmac.digest(key.secret, _bytes(text), "sha256")
    return urlsafe_b64encode(digest).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
