"""The tasks that notify: their names, their retry policies, and when they are available.

Most workers never send a notification, so the modules for delivery are imported on first use.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from batchmill.config import NotifySettings
from batchmill.domain.failure import Rule
from batchmill.domain.notification import EMAIL, WEBHOOK, Message
from batchmill.domain.retry import Retry
from batchmill.errors import BadResponse, BadStatus, ResponseTooLarge
from batchmill.jobinfo import JobInfo
from batchmill.notify.mail_config import MailConfig
from batchmill.store.store import EngineStore

# 15 s, 1 min, 4 min, 16 min, 1 h, 4 h, 17 h: about a day in all.
WEBHOOK_RETRY = Retry(attempts=8, base=15, factor=4, cap=86_400, jitter=0.2)
EMAIL_RETRY = Retry(attempts=7, base=60, factor=4, cap=86_400, jitter=0.2)
TIMEOUT = 60.0

# Standard Webhooks: any status that is not 2xx, including 404, is a failure to retry. Only 410 is
# final; webhook.py handles it.
NOT_ACCEPTED = Rule(
    (BadStatus, BadResponse, ResponseTooLarge),
    code="webhook_refused",
    transient=True,
    message="The webhook did not accept the message.",
)


@dataclass(frozen=True, slots=True)
class Handler:
    function: Callable[..., Any]
    options: dict[str, Any]


def handlers(store: EngineStore, settings: NotifySettings) -> Iterator[Handler]:
    """Yields the tasks whose libraries are installed. Mail also needs its settings."""
    if find_spec("standardwebhooks"):
        options = {"name": WEBHOOK, "retry": WEBHOOK_RETRY, "rules": [NOT_ACCEPTED]}
        yield Handler(webhook_handler(store, settings), options | {"timeout": TIMEOUT})
    if find_spec("aiosmtplib") and (mail_config := MailConfig.of(settings)):
        options = {"name": EMAIL, "retry": EMAIL_RETRY, "timeout": TIMEOUT}
        yield Handler(email_handler(store, settings, mail_config), options)


def webhook_handler(store: EngineStore, settings: NotifySettings) -> Callable[..., Any]:
    async def webhook(job: JobInfo, message: Message) -> str:
        from batchmill.notify import webhook

        return await webhook.deliver(store.webhooks, settings, job.tenant, message)

    return webhook


def email_handler(
    store: EngineStore, settings: NotifySettings, mail_config: MailConfig
) -> Callable[..., Any]:
    async def email(job: JobInfo, message: Message) -> str:
        from batchmill.notify import email

        return await email.deliver(store.notifications, mail_config, settings, job, message)

    return email
