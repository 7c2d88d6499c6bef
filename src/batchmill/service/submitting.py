"""A submit, in one transaction with all that belongs to it; its body is JSON, or a form."""

from collections.abc import Iterable
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from batchmill.handles import Batch
from batchmill.service.caller import Caller
from batchmill.service.form import Form
from batchmill.service.schemas import BatchOptionsBody, NewBatch
from batchmill.store import tenants
from batchmill.submission import Item

Model = TypeVar("Model", bound=BaseModel)


async def submit_request(request: Request, caller: Caller, idempotency_key: str | None) -> Batch:
    if not request.headers.get("content-type", "").lower().startswith("multipart/"):
        body = checked(NewBatch, await request.json())
        return await submit(caller, body, items_of(body), idempotency_key)
    form = Form(request, caller)
    async with form.read():
        body = checked(BatchOptionsBody, form.options)
        batch = await submit(caller, body, form.items(), idempotency_key)
        if batch.is_existing:
            await form.drop()
    return batch


async def submit(
    caller: Caller, body: BatchOptionsBody, items: Iterable[Any], idempotency_key: str | None
) -> Batch:
    options = body.options()
    if idempotency_key is not None:
        options["idempotency_key"] = idempotency_key
    mill = caller.mill
    submission = await mill.prepare(body.task, **options)
    async with mill.transaction(idempotency_key=idempotency_key) as conn:
        batch = await mill.send(submission, items, connection=conn)
        if caller.quota and not batch.is_existing:
            await tenants.count_operations(conn, batch.id, caller.quota)
    return batch


def items_of(body: NewBatch) -> Iterable[Any]:
    if body.jobs is None:
        return body.items or ()
    return (Item(**dict(job)) for job in body.jobs)


def checked(kind: type[Model], data: Any) -> Model:
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise RequestValidationError(
            [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        ) from None
