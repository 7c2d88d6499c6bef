"""Notifies by mail."""

from batchmill.config import NotifySettings
from batchmill.domain.notification import Message
from batchmill.errors import Permanent
from batchmill.jobinfo import JobInfo
from batchmill.notify import mail, smtp
from batchmill.notify.postbox import Postbox
from batchmill.store.notifications import NotificationStore


async def tell(
    notifications: NotificationStore,
    postbox: Postbox,
    settings: NotifySettings,
    job: JobInfo,
    message: Message,
) -> str:
    """Sends the mail and returns the result of the job, which describes what happened."""
    address = await notifications.email(message.notification_id, job.tenant)
    if address is None:
        return "The batch was deleted."
    if not await notifications.count_mail(job.id, address, job.tenant, settings):
        raise Permanent(
            "The address or the tenant has had as many mails in the last hour as it may.",
            code="too_many_mails",
        )
    await smtp.send(mail.written(message, address, postbox), postbox.relay)
    return "The mail server accepted it."
