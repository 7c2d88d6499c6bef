"""HeatSync's own tables."""

from importlib.resources import files

from batchmill import Client, Schema

HEATSYNC = Schema("heatsync", files("apps.heatsync") / "sql")
# The same as for batches.
KEPT_DAYS = 30


async def forget_old(mill: Client) -> None:
    await HEATSYNC.rows(mill, "forget", days=KEPT_DAYS)
