"""Trying again by hand, and not for ever."""

from apps.heatsync.answers import Refusal
from batchmill import Batch

# Each end of a batch is told to those who wait for it, so there is a last one.
MOST_RETRIES = 10


async def require_another(batch: Batch) -> None:
    if (await batch.get()).generation > MOST_RETRIES:
        raise Refusal(
            "TOO_MANY_RETRIES",
            f"This was retried {MOST_RETRIES} times: hand the sheets in again later.",
            status=409,
        )
