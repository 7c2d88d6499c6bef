"""API keys, the quotas of tenants, and the keys that sign links."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from batchmill.domain.key import Key, KeyRecord, Scope
from batchmill.domain.link import SigningKey
from batchmill.domain.quota import Quota
from batchmill.errors import NotFound
from batchmill.store.database import Database
from batchmill.urgency import urgent

SECRET_BYTES = 32


class KeyStore:
    def __init__(self, database: Database):
        self._database = database

    async def create(
        self,
        key: Key,
        *,
        name: str,
        tenant: str,
        scopes: Sequence[Scope],
        expires_in: float | None,
    ) -> KeyRecord:
        (row,) = await self._database.rows(
            "create_key",
            id=key.id,
            tenant=tenant,
            name=name,
            digest=key.digest,
            scopes=[scope.value for scope in scopes],
            expires_in=expires_in,
        )
        return _record(row)

    async def all(self) -> list[KeyRecord]:
        return [_record(row) for row in await self._database.rows("keys")]

    async def revoke(self, id: str) -> KeyRecord:
        row = await self._database.row("revoke_key", id=id)
        if row is None:
            raise NotFound(f'There is no key "{id}".')
        return _record(row)

    async def lapsed(self, ids: Collection[str]) -> set[str]:
        """Returns those of the given keys that are no longer valid."""
        return {row["id"] for row in await self._database.rows("lapsed_keys", keys=[*ids])}

    async def admit(
        self, key: str | None, digest: bytes | None, *, tenant: str | None, address: str
    ) -> dict[str, Any] | None:
        """What the caller with this key may do; None if the key is not valid. If the tenant is
        known, the query uses the tenant's share of connections; all other callers share a few."""
        return await self._admit("admit", tenant, address, key=key, digest=digest)

    async def admit_session(
        self, key: str, *, tenant: str | None, address: str
    ) -> dict[str, Any] | None:
        """The same for a session, whose cookie proves that the caller had the key."""
        return await self._admit("admit_session", tenant, address, key=key)

    async def _admit(
        self, query: str, tenant: str | None, address: str, **params: Any
    ) -> dict[str, Any] | None:
        kind, caller = ("short", tenant) if tenant is not None else ("lookup", address)
        async with self._database.shares.of(kind).taken(caller):
            with urgent():
                return await self._database.value(query, **params)

    async def can_act_for_tenants(self) -> bool:
        """Whether the database user may take the tenants' role."""
        return await self._database.value("can_act_for_tenants")

    async def quotas(self) -> list[Quota]:
        return [Quota(**row) for row in await self._database.rows("quotas")]

    async def set_quota(self, quota: Quota) -> Quota:
        (row,) = await self._database.rows("set_quota", **asdict(quota))
        return Quota(**row)

    async def delete_quota(self, tenant: str) -> None:
        if not await self._database.rows("delete_quota", tenant=tenant):
            raise NotFound(f'The tenant "{tenant}" has no quota of its own.')

    async def signing_keys(self) -> tuple[list[SigningKey], float]:
        """The signing keys, newest first, and the current time. Creates the first key."""
        while (rows := await self._database.rows("signing_keys"))[0]["id"] is None:
            await self.add_signing_key()
        return [SigningKey(row["id"], row["secret"]) for row in rows], rows[0]["now"]

    async def add_signing_key(self, *, keep: int | None = None) -> None:
        """Adds a key. The newest `keep` keys stay valid, or all of them."""
        secret = secrets.token_bytes(SECRET_BYTES)
        await self._database.value("add_signing_key", secret=secret, keep=keep)


def _record(row: dict[str, Any]) -> KeyRecord:
    row["scopes"] = [Scope(scope) for scope in row["scopes"]]
    return KeyRecord(**row)
