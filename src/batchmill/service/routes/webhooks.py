"""Webhooks: the URLs that are notified when batches finish."""

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter

from batchmill.service import schemas
from batchmill.service.caller import Reader, Submitter
from batchmill.service.pages import Cursor, Pages, Size
from batchmill.service.requests import GuardedRoute

router = APIRouter(tags=["notifications"], route_class=GuardedRoute)


@router.post("/webhooks", status_code=201)
async def save_webhook(caller: Submitter, body: schemas.NewWebhook) -> schemas.WebhookWithSecret:
    """Registers a URL. The response has the secret that signs the messages."""
    record = await caller.client.webhooks.save(body.url, tenant=caller.tenant)
    return schemas.WebhookWithSecret.model_validate(record)


@router.get("/webhooks")
async def list_webhooks(
    caller: Reader, size: Size = 100, cursor: Cursor = None
) -> schemas.Webhooks:
    """The oldest first."""
    pages = Pages(caller, "webhooks")
    after = await pages.place(cursor, datetime.fromisoformat, UUID)
    found = await caller.client.webhooks.all(after=after, count=size + 1)
    return schemas.Webhooks(
        webhooks=[schemas.Webhook.model_validate(each) for each in found[:size]],
        next=await pages.next(found, size, lambda last: (last.created_at, last.id)),
    )


@router.get("/webhooks/{id}")
async def get_webhook(caller: Reader, id: UUID) -> schemas.Webhook:
    return schemas.Webhook.model_validate(await caller.client.webhooks.get(id))


@router.post("/webhooks/{id}/rotate")
async def rotate_webhook(caller: Submitter, id: UUID) -> schemas.WebhookWithSecret:
    """Creates a new secret. For a day, the old one signs too."""
    return schemas.WebhookWithSecret.model_validate(await caller.client.webhooks.rotate(id))


@router.post("/webhooks/{id}/enable")
async def enable_webhook(caller: Submitter, id: UUID) -> schemas.Webhook:
    """Enables a webhook that was disabled because its receiver answered 410 Gone."""
    return schemas.Webhook.model_validate(await caller.client.webhooks.enable(id))


@router.delete("/webhooks/{id}", status_code=204)
async def delete_webhook(caller: Submitter, id: UUID) -> None:
    await caller.client.webhooks.delete(id)


@router.post("/batches/{id}/notifications")
async def notify(caller: Submitter, id: UUID, body: schemas.Targets) -> schemas.Notifications:
    """Adds targets to notify when the batch finishes; immediately if it has finished."""
    found = await caller.client.batch(id).notify(*body.targets)
    return schemas.Notifications(
        notifications=[schemas.Notification.model_validate(each) for each in found]
    )


@router.get("/batches/{id}/notifications")
async def list_notifications(caller: Reader, id: UUID) -> schemas.Notifications:
    found = await caller.client.batch(id).notifications()
    return schemas.Notifications(
        notifications=[schemas.Notification.model_validate(each) for each in found]
    )
