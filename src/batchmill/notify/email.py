"""Telling by mail."""

from batchmill.domain.notification import Message
from batchmill.notify import mail, smtp
from batchmill.notify.postbox import Postbox
from batchmill.store import notifications
from batchmill.store.database import Database


async def tell(database: Database, postbox: Postbox, tenant: str, message: Message) -> str:
    """What became of it, for whoever looks at the job."""
    address = await notifications.email_to_write(database, message.notification_id, tenant)
    if address is None:
        return "The batch was deleted."
    await smtp.send(mail.written(message, address, postbox), postbox.relay)
    return "The mail server accepted it."
