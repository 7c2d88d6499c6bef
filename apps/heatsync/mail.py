"""Mails when a batch is done. Strangers choose the addresses, so there are limits."""

from apps.heatsync.answers import Refusal
from apps.heatsync.settings import MailSettings
from batchmill import Batch, Conflict, Mill

MOST_ADDRESSES = 5


def is_set_up(mill: Mill) -> bool:
    """A mail needs the public URL of this server, because it exists to deliver the link."""
    return mill.sends_mail and MailSettings.read().public_url is not None


async def add_recipient(mill: Mill, batch: Batch, email: str) -> None:
    """Sends a mail to the address when the batch is done."""
    if not is_set_up(mill):
        raise Refusal(
            "MAIL_NOT_CONFIGURED",
            "This server does not send email. Copy the link instead.",
            status=503,
        )
    try:
        await batch.notify(email, at_most=MOST_ADDRESSES)
    except Conflict:
        raise Refusal(
            "TOO_MANY_ADDRESSES",
            f"The limit of {MOST_ADDRESSES} email addresses is reached. Share the link instead.",
            status=409,
        ) from None
