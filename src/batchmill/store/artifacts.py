"""Rows of artifacts, and the keys that links to them are signed with."""

import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from batchmill.domain.artifact import ArtifactKind, ArtifactRecord, ArtifactState
from batchmill.domain.job import Claim
from batchmill.domain.link import SigningKey
from batchmill.errors import LeaseLost, NotFound
from batchmill.store.database import Database

PAGE = 1_000
SECRET_BYTES = 32
FIRST = UUID(int=0)


class Room(NamedTuple):
    """How many bytes a file may take up, how many its tenant has used by then, and how many all of
    its files may; None is without a bound."""

    granted: int
    used: int
    most: int | None


class Place(NamedTuple):
    """Where the bytes of an artifact are, or will be."""

    id: UUID
    storage_key: str


async def begin_input(
    database: Database,
    id: UUID,
    tenant: str,
    name: str,
    media_type: str,
    *,
    at_least: int,
    at_most: int,
    quota: int | None,
) -> tuple[Place, Room]:
    (row,) = await database.rows(
        "begin_input",
        id=id,
        tenant=tenant,
        name=name,
        media_type=media_type,
        at_least=at_least,
        at_most=at_most,
        quota=quota,
    )
    return Place(row.pop("id"), row.pop("storage_key")), Room(**row)


async def begin_output(
    database: Database, id: UUID, claim: Claim, name: str, media_type: str
) -> Place:
    found = await database.rows(
        "begin_output", id=id, job=claim.id, fence=claim.fence, name=name, media_type=media_type
    )
    if not found:
        raise LeaseLost(f"Job {claim.id} belongs to another attempt by now.")
    return Place(**found[0])


async def grow(
    database: Database, id: UUID, *, at_least: int, at_most: int, quota: int | None
) -> Room | None:
    """None if nobody waits for the file any more."""
    (row,) = await database.rows(
        "grow_artifact", id=id, at_least=at_least, at_most=at_most, quota=quota
    )
    return None if row["granted"] is None else Room(**row)


async def end(database: Database, id: UUID, size: int, sha256: str) -> ArtifactRecord | None:
    found = await database.rows("end_artifact", id=id, size=size, sha256=sha256)
    return _record(found[0]) if found else None


async def give_up(database: Database, id: UUID) -> Place | None:
    """Where its bytes are; None if there is no such file."""
    key = await database.value("give_up_artifact", id=id)
    return None if key is None else Place(id, key)


async def delete(database: Database, id: UUID) -> Place:
    return Place(id, await database.value("delete_artifact", id=id))


async def forget(database: Database, ids: Sequence[UUID]) -> None:
    await database.value("forget_artifacts", ids=list(ids))


async def get(
    database: Database, id: UUID, *, tenant: str | None = None, fence: int | None = None
) -> ArtifactRecord:
    """Of one tenant, if that is given; with a fence, also what that attempt has written."""
    found = await database.rows("artifact", id=id, tenant=tenant, fence=fence)
    if not found:
        raise NotFound(f"There is no artifact {id}.")
    return _record(found[0])


async def count_download(database: Database, id: UUID) -> None:
    await database.value("count_download", id=id)


async def of_batch(
    database: Database, batch_id: UUID, kind: str | None
) -> AsyncIterator[ArtifactRecord]:
    after = FIRST
    while page := await page_of_batch(database, batch_id, kind, after, PAGE):
        for record in page:
            yield record
        after = page[-1].id


async def page_of_batch(
    database: Database, batch_id: UUID, kind: str | None, after: UUID, count: int
) -> list[ArtifactRecord]:
    found = await database.rows(
        "artifacts_of_batch", batch=batch_id, kind=kind, after=after, count=count
    )
    return [_record(row) for row in found]


async def of_job(database: Database, job_id: int) -> list[ArtifactRecord]:
    return [_record(row) for row in await database.rows("artifacts_of_job", job=job_id)]


async def of_results(
    database: Database, batch_id: UUID, positions: Sequence[int]
) -> dict[int, list[ArtifactRecord]]:
    """What completed jobs hand over, by their positions."""
    found: dict[int, list[ArtifactRecord]] = {}
    for row in await database.rows(
        "artifacts_of_results", batch=batch_id, positions=list(positions)
    ):
        found.setdefault(row.pop("position"), []).append(_record(row))
    return found


async def litter(database: Database, most: int) -> list[Place]:
    """What can be removed, so many at a time."""
    return [Place(**row) for row in await database.rows("collect_litter", most=most)]


async def put_off(database: Database, ids: Sequence[UUID], seconds: float) -> None:
    await database.value("put_off_litter", ids=list(ids), seconds=seconds)


async def signing_keys(database: Database) -> tuple[list[SigningKey], float]:
    """The newest first, and the time; the first one is made when it is needed."""
    while (rows := await database.rows("signing_keys"))[0]["id"] is None:
        await add_signing_key(database)
    return [SigningKey(row["id"], row["secret"]) for row in rows], rows[0]["now"]


async def add_signing_key(database: Database, *, keep: int | None = None) -> None:
    """The newest `keep` go on being believed, or all of them."""
    secret = secrets.token_bytes(SECRET_BYTES)
    await database.value("add_signing_key", secret=secret, keep=keep)


def _record(row: dict[str, Any]) -> ArtifactRecord:
    row["kind"] = ArtifactKind(row["kind"])
    row["state"] = ArtifactState(row["state"])
    return ArtifactRecord(**row)
