"""Limits manual retries."""

from apps.heatsync.answers import Refusal
from batchmill import Batch

# Each time a batch ends, mails are sent, so retries are limited.
MOST_RETRIES = 10


async def require_retries_left(batch: Batch) -> None:
    if (await batch.get()).generation > MOST_RETRIES:
        raise Refusal(
            "TOO_MANY_RETRIES",
            f"These sheets were already retried {MOST_RETRIES} times. Submit them again later.",
            status=409,
        )
