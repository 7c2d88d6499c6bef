"""API keys, and the quotas of tenants."""

from collections.abc import Iterable

from batchmill.domain.key import Key, KeyRecord, Scope, check_scopes
from batchmill.domain.quota import Quota
from batchmill.engine import Engine
from batchmill.submission import Seconds, written_options


class KeyControls:
    def __init__(self, engine: Engine):
        self._engine = engine
        self._keys = engine.store.keys

    async def create(
        self,
        name: str,
        *,
        tenant: str = "default",
        scopes: Iterable[str] = (Scope.READ, Scope.SUBMIT),
        expires_in: Seconds | None = None,
    ) -> tuple[str, KeyRecord]:
        """Creates a key. Its text is not stored, so this is the only time that it can be read."""
        written = written_options({"key": name, "tenant": tenant, "expires_in": expires_in})
        key, checked = Key.new(), check_scopes(scopes)
        await self._engine.open()
        record = await self._keys.create(
            key, name=name, tenant=tenant, scopes=checked, expires_in=written.get("expires_in")
        )
        return key.text, record

    async def all(self) -> list[KeyRecord]:
        await self._engine.open()
        return await self._keys.all()

    async def revoke(self, id: str) -> KeyRecord:
        """Makes the key invalid at once."""
        await self._engine.open()
        return await self._keys.revoke(id)

    async def quotas(self) -> list[Quota]:
        await self._engine.open()
        return await self._keys.quotas()

    async def set_quota(self, quota: Quota) -> Quota:
        written_options({"tenant": quota.tenant})
        await self._engine.open()
        return await self._keys.set_quota(quota)

    async def delete_quota(self, tenant: str) -> None:
        await self._engine.open()
        await self._keys.delete_quota(tenant)
