"""The tasks that tell: what they are called, when they try again, and where they are served.

Most workers never tell anyone, so what delivery needs is imported when it is first needed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from batchmill.config import NotifySettings
from batchmill.domain.failure import Rule
from batchmill.domain.notification import EMAIL, WEBHOOK, Message
from batchmill.domain.retry import Retry
from batchmill.errors import BadResponse, BadStatus, ResponseTooLarge
from batchmill.job import Job
from batchmill.notify.postbox import Postbox

if TYPE_CHECKING:
    from batchmill.store.database import Database

# 15 s, 1 min, 4 min, 16 min, 1 h, 4 h, 17 h: about a day in all.
WEBHOOK_RETRY = Retry(attempts=8, base=15, factor=4, cap=86_400, jitter=0.2)
EMAIL_RETRY = Retry(attempts=7, base=60, factor=4, cap=86_400, jitter=0.2)
TIMEOUT = 60.0

# Standard Webhooks: whatever is not 2xx is a failure that may be over at the next attempt, also 404
# and the like. Only 410 is an answer for good; webhook.py sees to that.
NOT_ACCEPTED = Rule(
    (BadStatus, BadResponse, ResponseTooLarge),
    code="webhook_refused",
    transient=True,
    message="The webhook did not accept the message.",
)


class Opened(Protocol):
    """A mill, once it is open."""

    @property
    def database(self) -> "Database": ...


@dataclass(frozen=True, slots=True)
class Handler:
    function: Callable[..., Any]
    options: dict[str, Any]


def handlers(mill: Opened, settings: NotifySettings) -> Iterator[Handler]:
    """Those whose libraries are installed; mail also needs to know where to send it from."""
    if find_spec("standardwebhooks"):
        options = {"name": WEBHOOK, "retry": WEBHOOK_RETRY, "rules": [NOT_ACCEPTED]}
        yield Handler(webhook_handler(mill, settings), options | {"timeout": TIMEOUT})
    if find_spec("aiosmtplib") and (postbox := Postbox.of(settings)):
        options = {"name": EMAIL, "retry": EMAIL_RETRY, "timeout": TIMEOUT}
        yield Handler(email_handler(mill, settings, postbox), options)


def webhook_handler(mill: Opened, settings: NotifySettings) -> Callable[..., Any]:
    async def webhook(job: Job, message: Message) -> str:
        from batchmill.notify import webhook

        return await webhook.tell(mill.database, settings, job.tenant, message)

    return webhook


def email_handler(mill: Opened, settings: NotifySettings, postbox: Postbox) -> Callable[..., Any]:
    async def email(job: Job, message: Message) -> str:
        from batchmill.notify import email

        return await email.tell(mill.database, postbox, settings, job, message)

    return email


async def permit(urls: Sequence[str], settings: NotifySettings, tenant: str) -> None:
    from batchmill.notify import webhook

    await webhook.permit(urls, settings, tenant)
