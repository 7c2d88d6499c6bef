"""API keys: `bm_<id>_<secret>`. The id is public. Only a digest of the secret is stored."""

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from batchmill.errors import InvalidInput

KEY = re.compile(r"bm_([0-9a-z]{8})_([0-9A-Za-z_-]{43})")


class Scope(StrEnum):
    """`admin` includes the other scopes and may change schedules. An `admin` key of the tenant
    `default` also controls what all tenants share: limits, tasks and metrics."""

    READ = "read"
    SUBMIT = "submit"
    ADMIN = "admin"


class Key(NamedTuple):
    id: str
    secret: str

    @classmethod
    def new(cls) -> "Key":
        return cls(secrets.token_hex(4), secrets.token_urlsafe(32))

    @classmethod
    def read(cls, text: str) -> "Key | None":
        found = KEY.fullmatch(text)
        return cls(*found.groups()) if found else None

    @property
    def text(self) -> str:
        return f"bm_{self.id}_{self.secret}"

    @property
    def digest(self) -> bytes:
        """A plain hash is enough, because a secret of 32 random bytes cannot be guessed."""
        return hashlib.sha256(self.secret.encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    id: str
    tenant: str
    name: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


def check_scopes(scopes: Iterable[str]) -> list[Scope]:
    try:
        found = sorted({Scope(scope) for scope in scopes})
    except ValueError as error:
        raise InvalidInput(f"{error}: the scopes are {', '.join(Scope)}.") from None
    if not found:
        raise InvalidInput(f"A key needs at least one scope: {', '.join(Scope)}.")
    return found
