"""Artifacts: the rows of files. The bytes are in a `Storage`."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from batchmill.domain.artifact import ArtifactKind, ArtifactRecord, ArtifactState
from batchmill.domain.job import Claim
from batchmill.errors import NotFound
from batchmill.store.database import Database
from batchmill.store.errors import lease_lost

PAGE = 1_000
FIRST = UUID(int=0)


class Room(NamedTuple):
    """How many bytes are granted to a file, how many bytes its tenant then uses, and how many the
    tenant's files may use in all; None means no limit."""

    granted: int
    used: int
    most: int | None


class Place(NamedTuple):
    """Where the bytes of an artifact are, or will be."""

    id: UUID
    storage_key: str


class ArtifactStore:
    def __init__(self, database: Database):
        self._database = database

    async def begin_input(
        self,
        id: UUID,
        tenant: str,
        name: str,
        media_type: str,
        *,
        at_least: int,
        at_most: int,
        quota: int | None,
    ) -> tuple[Place, Room]:
        (row,) = await self._database.rows(
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

    async def begin_output(self, id: UUID, claim: Claim, name: str, media_type: str) -> Place:
        found = await self._database.rows(
            "begin_output", id=id, job=claim.id, fence=claim.fence, name=name, media_type=media_type
        )
        if not found:
            raise lease_lost(claim)
        return Place(**found[0])

    async def grow(
        self, id: UUID, *, at_least: int, at_most: int, quota: int | None
    ) -> Room | None:
        """None if the file is no longer expected."""
        (row,) = await self._database.rows(
            "grow_artifact", id=id, at_least=at_least, at_most=at_most, quota=quota
        )
        return None if row["granted"] is None else Room(**row)

    async def end(self, id: UUID, size: int, sha256: str) -> ArtifactRecord | None:
        found = await self._database.rows("end_artifact", id=id, size=size, sha256=sha256)
        return _record(found[0]) if found else None

    async def give_up(self, id: UUID) -> Place | None:
        """The place of its bytes; None if the file does not exist."""
        key = await self._database.value("give_up_artifact", id=id)
        return None if key is None else Place(id, key)

    async def delete(self, id: UUID) -> Place:
        return Place(id, await self._database.value("delete_artifact", id=id))

    async def forget(self, ids: Sequence[UUID]) -> None:
        await self._database.value("forget_artifacts", ids=list(ids))

    async def get(
        self, id: UUID, *, tenant: str | None = None, fence: int | None = None
    ) -> ArtifactRecord:
        """With a `tenant`, only that tenant's artifact. With a `fence`, also a file that this
        attempt has stored but that is not kept yet."""
        found = await self._database.rows("artifact", id=id, tenant=tenant, fence=fence)
        if not found:
            raise NotFound(f"There is no artifact {id}.")
        return _record(found[0])

    async def count_download(self, id: UUID) -> None:
        await self._database.value("count_download", id=id)

    async def of_batch(self, batch_id: UUID, kind: str | None) -> AsyncIterator[ArtifactRecord]:
        after = FIRST
        while page := await self.page_of_batch(batch_id, kind, after, PAGE):
            for record in page:
                yield record
            after = page[-1].id

    async def page_of_batch(
        self, batch_id: UUID, kind: str | None, after: UUID, count: int
    ) -> list[ArtifactRecord]:
        found = await self._database.rows(
            "artifacts_of_batch", batch=batch_id, kind=kind, after=after, count=count
        )
        return [_record(row) for row in found]

    async def of_job(self, job_id: int) -> list[ArtifactRecord]:
        return [_record(row) for row in await self._database.rows("artifacts_of_job", job=job_id)]

    async def of_results(
        self, batch_id: UUID, positions: Sequence[int]
    ) -> dict[int, list[ArtifactRecord]]:
        """The files that completed jobs made or name in their results, by the jobs' positions."""
        return await self._by_position("artifacts_of_results", batch_id, positions)

    async def of_duplicates(
        self, batch_id: UUID, positions: Sequence[int]
    ) -> dict[int, list[ArtifactRecord]]:
        """The same kinds of files, for the jobs that the duplicates at these positions name."""
        return await self._by_position("artifacts_of_duplicates", batch_id, positions)

    async def _by_position(
        self, query: str, batch_id: UUID, positions: Sequence[int]
    ) -> dict[int, list[ArtifactRecord]]:
        found: dict[int, list[ArtifactRecord]] = {}
        for row in await self._database.rows(query, batch=batch_id, positions=list(positions)):
            found.setdefault(row.pop("position"), []).append(_record(row))
        return found

    async def apply_releases(self, most: int) -> int:
        """Gives up released files that nothing needs any more. Returns how many files it checked,
        at most `most`; fewer if no other file can be checked now."""
        return await self._database.value("apply_releases", most=most)

    async def orphans(self, most: int) -> list[Place]:
        """At most `most` files that nothing needs any more."""
        return [Place(**row) for row in await self._database.rows("collect_garbage", most=most)]

    async def put_off(self, ids: Sequence[UUID], seconds: float) -> None:
        await self._database.value("postpone_garbage", ids=list(ids), seconds=seconds)


def _record(row: dict[str, Any]) -> ArtifactRecord:
    row["kind"] = ArtifactKind(row["kind"])
    row["state"] = ArtifactState(row["state"])
    return ArtifactRecord(**row)
