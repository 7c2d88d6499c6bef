"""What has been read already, and the code that it is shared by."""

import secrets
from typing import Any, NamedTuple

from psycopg import AsyncConnection

from apps.heatsync import tables
from apps.heatsync.models import Extraction
from batchmill import Client

# Without signs that people take for one another.
LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
CODE_LENGTH = 8


class Question(NamedTuple):
    """Which swimmer, in which sheet, read by whom."""

    sha256: str
    swimmer: str
    reader: str


class Kept(NamedTuple):
    """`is_new` if nobody had asked before."""

    code: str
    extraction: Extraction
    is_new: bool = False


async def find(mill: Client, question: Question) -> Kept | None:
    async with tables.transaction(mill) as conn:
        return _kept(await tables.one(conn, "find_extraction", **question._asdict()))


async def get(mill: Client, code: str) -> Kept | None:
    if not set(code.upper()) <= set(LETTERS):
        return None
    async with tables.transaction(mill) as conn:
        return _kept(await tables.one(conn, "get_extraction", code=code.upper()))


async def keep(conn: AsyncConnection[Any], question: Question, extraction: Extraction) -> Kept:
    """Under a new code, unless another job was faster: then under that one's."""
    asked = question._asdict()
    text = extraction.model_dump_json(by_alias=True)
    while True:
        code = new_code()
        if await tables.one(conn, "keep_extraction", code=code, extraction=text, **asked):
            return Kept(code, extraction, is_new=True)
        if kept := _kept(await tables.one(conn, "find_extraction", **asked)):
            return kept


def new_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(CODE_LENGTH))


def _kept(row: dict[str, Any] | None) -> Kept | None:
    return Kept(row["code"], Extraction.model_validate(row["extraction"])) if row else None
