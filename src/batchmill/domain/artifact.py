"""An artifact: a file that went in or came out."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from mimetypes import MimeTypes
from uuid import UUID

from batchmill.errors import InvalidInput, NotFound

NAME_BYTES = 200
UNKNOWN_TYPE = "application/octet-stream"

_SUFFIX_BYTES = 20
_NAMELESS = "file"
# Characters that cut off or hide part of a name on Windows, in a shell or in a terminal.
_FORBIDDEN = re.compile(r'[<>:"|?*]')
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\.|$)", re.I)
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,62}/[a-z0-9][a-z0-9!#$&^_.+-]{0,62}")
# Ignore the machine's own MIME files, so that a name maps to the same type everywhere.
_KNOWN_TYPES = MimeTypes(filenames=())


class ArtifactKind(StrEnum):
    INPUT = "input"
    OUTPUT = "output"


class ArtifactState(StrEnum):
    """`stored`: output of an attempt that has not ended. `gone`: to be removed."""

    WRITING = "writing"
    STORED = "stored"
    KEPT = "kept"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A reference to a file in payloads and results, with its properties."""

    artifact: UUID
    name: str | None = None
    size: int | None = None
    media_type: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRecord:
    """An artifact as stored in the database."""

    id: UUID
    tenant: str
    kind: ArtifactKind
    state: ArtifactState
    batch_id: UUID | None
    job_id: int | None
    name: str
    media_type: str
    size: int
    sha256: str
    storage_key: str
    downloads: int
    created_at: datetime
    expires_at: datetime

    @property
    def reference(self) -> Artifact:
        return Artifact(self.id, self.name, self.size, self.media_type, self.sha256)


def artifact_id(given: Artifact | ArtifactRecord | UUID | str) -> UUID:
    if isinstance(given, Artifact):
        return given.artifact
    if isinstance(given, ArtifactRecord):
        return given.id
    try:
        return given if isinstance(given, UUID) else UUID(given)
    except (ValueError, AttributeError, TypeError):
        raise NotFound(f'There is no artifact "{given}".') from None


def safe_name(name: str) -> str:
    """Returns a name that is valid on every system: no folders, no invisible characters, at most
    200 bytes."""
    last = re.split(r"[/\\]", name)[-1]
    visible = "".join(c for c in last if unicodedata.category(c) not in _INVISIBLE)
    composed = unicodedata.normalize("NFC", visible)
    plain = shortened(_FORBIDDEN.sub("_", composed).strip().rstrip(". "))
    if _DEVICE.match(plain):
        plain = shortened(f"_{plain}")
    return plain or _NAMELESS


def shortened(name: str, most: int = NAME_BYTES) -> str:
    """Cuts a name before its suffix, without splitting a character."""
    if len(name.encode()) <= most:
        return name
    stem, suffix = split_suffix(name)
    room = most - len(suffix.encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(". ") + suffix


def split_suffix(name: str) -> tuple[str, str]:
    stem, dot, suffix = name.rpartition(".")
    if not stem or len(suffix.encode()) >= _SUFFIX_BYTES:
        return name, ""
    return stem, dot + suffix


def checked_type(given: str | None, name: str) -> str:
    """Returns the given type without its parameters, or a guess from the name."""
    if given is None:
        return _KNOWN_TYPES.guess_type(name, strict=False)[0] or UNKNOWN_TYPE
    plain = given.partition(";")[0].strip().lower()
    if not _MEDIA_TYPE.fullmatch(plain):
        raise InvalidInput(
            f'"{given[:100]}" is not a valid media type. Use a form such as "application/pdf".'
        )
    return plain
