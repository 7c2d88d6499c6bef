"""Mails when a batch is done. Strangers choose the addresses, so there are limits."""

from apps.heatsync import tables
from apps.heatsync.answers import Refusal
from batchmill import Batch, Mill
from batchmill.domain.notification import EMAIL

MOST_ADDRESSES = 5


def is_set_up(mill: Mill) -> bool:
    """A mail needs the public URL of this server, because it exists to deliver the link."""
    return EMAIL in mill.engine.builtin_tasks and mill.engine.notifying.public_url is not None


async def add_recipient(mill: Mill, batch: Batch, email: str) -> None:
    """Sends a mail to the address when the batch is done."""
    if not is_set_up(mill):
        raise Refusal(
            "MAIL_NOT_CONFIGURED",
            "This server does not send email. Copy the link instead.",
            status=503,
        )
    await mill.engine.targets.check([email], (await batch.get()).tenant)
    async with tables.transaction(mill) as conn:
        # This locks the batch, so that concurrent requests are counted one after the other.
        await tables.one(conn, "notify", batch=batch.id, email=email)
        row = await tables.one(conn, "count_notified", batch=batch.id)
        if row and row["count"] > MOST_ADDRESSES:
            raise Refusal(
                "TOO_MANY_ADDRESSES",
                f"The limit of {MOST_ADDRESSES} email addresses is reached. Share the link "
                "instead.",
                status=409,
            )
