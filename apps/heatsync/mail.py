"""Mail to whoever waits for a batch. Strangers say whom to write to, so there are bounds."""

from apps.heatsync import tables
from apps.heatsync.answers import Refusal
from batchmill import Batch, Mill
from batchmill.domain.notification import EMAIL

MOST_ADDRESSES = 5


def is_set_up(mill: Mill) -> bool:
    """Without an address of our own there is no link to write, and a mail is of no use."""
    return EMAIL in mill.engine.builtin_tasks and mill.engine.notifying.public_url is not None


async def promise(mill: Mill, batch: Batch, email: str) -> None:
    """That the address is written to when the batch is done."""
    if not is_set_up(mill):
        raise Refusal(
            "MAIL_NOT_CONFIGURED", "This server sends no mail: keep the link instead.", status=503
        )
    await mill.engine.targets.check([email], (await batch.get()).tenant)
    async with tables.transaction(mill) as conn:
        # This locks the batch: of two that come at once, one is counted after the other.
        await tables.one(conn, "notify", batch=batch.id, email=email)
        found = await tables.one(conn, "count_notified", batch=batch.id)
        if found and found["count"] > MOST_ADDRESSES:
            raise Refusal(
                "TOO_MANY_ADDRESSES",
                f"{MOST_ADDRESSES} addresses are told of this already: share the link instead.",
                status=409,
            )
