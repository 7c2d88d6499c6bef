"""Telling by mail."""

from batchmill.config import NotifySettings
from batchmill.domain.notification import Message
from batchmill.errors import Permanent
from batchmill.job import Job
from batchmill.notify import mail, smtp
from batchmill.notify.postbox import Postbox
from batchmill.store import notifications
from batchmill.store.database import Database


async def tell(
    database: Database,
    postbox: Postbox,
    settings: NotifySettings,
    job: Job,
    message: Message,
) -> str:
    """The result of the job: what happened to the mail."""
    address = await notifications.email_to_write(database, message.notification_id, job.tenant)
    if address is None:
        return "The batch was deleted."
    if not await notifications.count_mail(database, job.id, address, job.tenant, settings):
        raise Permanent(
            "The address or the tenant has had as many mails in the last hour as it may.",
            code="too_many_mails",
        )
    await smtp.send(mail.written(message, address, postbox), postbox.relay)
    return "The mail server accepted it."
