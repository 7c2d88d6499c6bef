"""A submit, in one transaction with everything that belongs to it. The body is JSON or a form."""

from collections.abc import AsyncIterable, Iterable
from typing import Any

from fastapi import Request

from batchmill.handles import Batch
from batchmill.service.batchform import BatchForm
from batchmill.service.caller import Caller
from batchmill.service.newbatch import NewBatchBody
from batchmill.service.schemas import BatchOptionsBody


async def submit_request(request: Request, caller: Caller, idempotency_key: str | None) -> Batch:
    if not request.headers.get("content-type", "").lower().startswith("multipart/"):
        async with NewBatchBody.read(request) as sent:
            return await submit(caller, await sent.check(), sent.items(), idempotency_key)
    form = BatchForm(request, caller)
    async with form.options() as body:
        batch = await submit(caller, body, form.items(), idempotency_key)
        if batch.is_existing:
            await form.discard()
    return batch


async def submit(
    caller: Caller,
    body: BatchOptionsBody,
    items: Iterable[Any] | AsyncIterable[Any],
    idempotency_key: str | None,
) -> Batch:
    options = body.options()
    if idempotency_key is not None:
        options["idempotency_key"] = idempotency_key
    submission = await caller.client.prepare(body.task, **options)
    return await caller.client.send(submission, items)
