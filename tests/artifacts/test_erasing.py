"""Erasing a tenant removes its files from every kind of storage."""

import pytest

from batchmill import Artifact, Job, Mill, StorageError
from batchmill.artifacts.storage import Storage


async def test_files_of_an_erased_tenant_are_removed_from_the_storage(
    dsn: str, storage: Storage
) -> None:
    async with Mill(dsn, artifacts=storage) as mill:

        @mill.task(entry=True)
        async def copy(job: Job, file: Artifact) -> Artifact:
            return await job.artifacts.save("copy", await job.artifacts.read(file))

        kept: dict[str, list[str]] = {}
        for tenant in ("acme", "neighbour"):
            client = mill.as_tenant(tenant)
            file = await client.artifacts.save("in", b"hello")
            batch = await client.submit(copy, [file.reference] * 3)
            async with mill.running():
                await batch.wait()
            kept[tenant] = [each.storage_key async for each in client.artifacts.of_batch(batch.id)]
        await mill.tenants.erase("acme")
        assert len(kept["acme"]) == 4
        for key in kept["acme"]:
            with pytest.raises(StorageError):
                await storage.read(key, 0, 5)
        for key in kept["neighbour"]:
            assert [part async for part in await storage.read(key, 0, 5)] == [b"hello"]
