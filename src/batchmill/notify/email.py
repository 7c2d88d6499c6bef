"""Notifies by mail."""

from batchmill.config import NotifySettings
from batchmill.domain.notification import Message
from batchmill.errors import Permanent
from batchmill.jobinfo import JobInfo
from batchmill.notify import mail, smtp
from batchmill.notify.mail_config import MailConfig
from batchmill.store.notifications import NotificationStore


async def deliver(
    notifications: NotificationStore,
    mail_config: MailConfig,
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
            "The address or the tenant has reached its limit of mails per hour.",
            code="too_many_mails",
        )
    await smtp.send(mail.written(message, address, mail_config), mail_config.relay)
    return "The mail server accepted the mail."
