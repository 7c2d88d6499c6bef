"""Calls a webhook: a POST as in Standard Webhooks, with the same address rules as other URLs."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from typing import Any

from pydantic_core import to_json

from batchmill.config import NotifySettings
from batchmill.domain.notification import EVENT_TYPE, Message
from batchmill.errors import AddressRefused, BadStatus, BadUrl, FetchError, InvalidInput, Permanent
from batchmill.fetch.address import Addresses
from batchmill.fetch.fetcher import Fetcher
from batchmill.fetch.limits import FetchLimits
from batchmill.store.webhooks import WebhookCall, WebhookStore

# Only the status of the response matters.
LIMITS = FetchLimits(
    size=65_536,
    wire=65_536,
    headers=16_384,
    redirects=0,
    total=15.0,
    lookup=3.0,
    connect=5.0,
    read=15.0,
)
GONE_BECAUSE = "The webhook answered 410 Gone."


async def deliver(
    webhooks: WebhookStore, settings: NotifySettings, tenant: str, message: Message
) -> str:
    """Calls the webhook and returns the result of the job, which describes what happened."""
    call = await webhooks.call(message.notification_id, tenant)
    if call is None:
        return "The webhook or its batch was deleted."
    if call.is_disabled:
        raise Permanent("The webhook is disabled.", code="webhook_disabled")
    body = body_of(message)
    try:
        async with fetcher(settings.allowed).post(
            call.url, body, headers=headers_of(call, message.id, body), caller=tenant
        ) as response:
            return f"The webhook answered {response.status}."
    except BadStatus as error:
        if error.status != HTTPStatus.GONE:
            raise
        await webhooks.disable(call.id, GONE_BECAUSE)
        raise Permanent(
            "The webhook answered 410 Gone, so it was disabled.", code="webhook_gone"
        ) from error


async def permit(urls: Sequence[str], settings: NotifySettings, tenant: str) -> None:
    """Refuses URLs that can never be called. A name that does not resolve now may resolve later,
    and is checked again at every call."""
    try:
        await fetcher(settings.allowed).check(*urls, caller=tenant)
    except (BadUrl, AddressRefused) as error:
        raise InvalidInput(str(error)) from None
    except FetchError:
        return


@cache
def fetcher(allowed: tuple[str, ...]) -> Fetcher:
    return Fetcher(addresses=Addresses(allow=allowed), limits=LIMITS)


def body_of(message: Message) -> bytes:
    """The body is the same for every delivery."""
    data: dict[str, Any] = {"task": message.task, "labels": message.labels}
    return to_json(
        {
            "type": EVENT_TYPE,
            "timestamp": message.finished_at.astimezone(UTC),
            "data": asdict(message.batch) | data,
        }
    )


def headers_of(call: WebhookCall, id: str, body: bytes) -> dict[str, str]:
    return {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(int(call.now.timestamp())),
        "webhook-signature": " ".join(
            signature(secret, id, call.now, body) for secret in call.secrets
        ),
    }


def signature(secret: str, id: str, at: datetime, body: bytes) -> str:
    # Imported here because processes that only submit do not sign, and may not have the package.
    from standardwebhooks import Webhook

    return Webhook(secret).sign(id, at.astimezone(UTC), body.decode())
