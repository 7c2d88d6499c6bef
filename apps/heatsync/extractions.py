"""Stored extractions and their share codes."""

import secrets
from typing import Any, NamedTuple

from psycopg import AsyncConnection

from apps.heatsync.models import Extraction
from apps.heatsync.tables import HEATSYNC
from batchmill import Client

# Without characters that look alike, such as 0 and O.
LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
CODE_LENGTH = 8


class ExtractionKey(NamedTuple):
    """Identifies an extraction: the sheet, the swimmer, and the version of the reader."""

    sha256: str
    swimmer: str
    reader: str


class StoredExtraction(NamedTuple):
    """`is_new` if it was not stored before."""

    code: str
    extraction: Extraction
    is_new: bool = False


async def find(mill: Client, key: ExtractionKey, tenant: str) -> StoredExtraction | None:
    """Also records that the tenant uses it."""
    return _stored(await HEATSYNC.row(mill, "find_extraction", tenant=tenant, **key._asdict()))


async def get(mill: Client, code: str) -> StoredExtraction | None:
    if not set(code.upper()) <= set(LETTERS):
        return None
    return _stored(await HEATSYNC.row(mill, "get_extraction", code=code.upper()))


async def keep(
    conn: AsyncConnection[Any], key: ExtractionKey, extraction: Extraction, tenant: str
) -> StoredExtraction:
    """Stores it with a new code. If another job stored it first, returns that job's."""
    values = {"tenant": tenant, **key._asdict()}
    text = extraction.model_dump_json(by_alias=True)
    while True:
        code = new_code()
        if await HEATSYNC.row(conn, "keep_extraction", code=code, extraction=text, **values):
            return StoredExtraction(code, extraction, is_new=True)
        if stored := _stored(await HEATSYNC.row(conn, "find_extraction", **values)):
            return stored


def new_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(CODE_LENGTH))


def _stored(row: dict[str, Any] | None) -> StoredExtraction | None:
    return (
        StoredExtraction(row["code"], Extraction.model_validate(row["extraction"])) if row else None
    )
