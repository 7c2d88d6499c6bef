"""Batches: submit, read, get results, cancel, retry, delete."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Request, Response

from batchmill.domain.batch import BatchState
from batchmill.domain.job import JobState
from batchmill.service import schemas
from batchmill.service.caller import Reader, Submitter
from batchmill.service.pages import Cursor, Pages, Size
from batchmill.service.requests import GuardedRoute
from batchmill.service.results import merged
from batchmill.service.service import AnyService
from batchmill.service.submitting import submit_request

router = APIRouter(prefix="/batches", tags=["batches"], route_class=GuardedRoute)

FIRST_DUPLICATES = 100

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1, max_length=500, description="Submits with the same key return the same batch."
    ),
]


@router.post(
    "",
    status_code=202,
    openapi_extra={"requestBody": {"required": True, "content": schemas.SUBMIT_CONTENT}},
)
async def submit_batch(
    request: Request,
    response: Response,
    caller: Submitter,
    idempotency_key: IdempotencyKey = None,
) -> schemas.SubmittedBatch:
    """Submits jobs to a task: payloads as JSON, or a form with files, each of which makes a job.
    All jobs are stored when the response arrives."""
    batch = await submit_request(request, caller, idempotency_key)
    body = schemas.batch(await batch.get(), request)
    response.headers["Location"] = body.links.self
    duplicates = caller.client.store.duplicates
    found = await duplicates.page(batch.id, -1, FIRST_DUPLICATES) if body.duplicates else []
    return schemas.SubmittedBatch(
        **dict(body), first_duplicates=[schemas.Duplicate.of(each) for each in found]
    )


@router.get("")
async def list_batches(
    request: Request,
    caller: Reader,
    state: BatchState | None = None,
    task: schemas.Name | None = None,
    size: Size = 20,
    cursor: Cursor = None,
) -> schemas.Batches:
    """The newest first. A page has fewer than `size` if their labels are large."""
    pages = Pages(caller, "batches")
    found, has_more = await caller.client.store.batches.page(
        {"state": state, "task": task, "count": size},
        before=await pages.place(cursor, datetime.fromisoformat, UUID),
    )
    return schemas.Batches(
        batches=[schemas.batch(record, request) for record in found],
        next=await pages.cursor(found[-1].created_at, found[-1].id) if has_more else None,
    )


@router.get("/{id}", name="batchmill.get_batch", summary="Get Batch")
async def get_batch(request: Request, caller: Reader, id: UUID) -> schemas.BatchWithUsage:
    record = await caller.client.batch(id).get()
    usage = {total.name: total.amount for total in await caller.client.usage(batch=id)}
    return schemas.batch_with_usage(record, usage, request)


@router.get("/{id}/jobs")
async def list_jobs(
    caller: Reader, id: UUID, state: JobState | None = None, size: Size = 100, cursor: Cursor = None
) -> schemas.Jobs:
    """In the order of submission. A page looks at 10,000 jobs at most: with a `state`, it may have
    fewer than `size`, even none, and a `next` all the same."""
    pages = Pages(caller, f"jobs of {id}")
    (after,) = await pages.place(cursor, int) or (-1,)
    found, upto = await caller.client.store.jobs.page_of_batch(
        {"state": state, "count": size}, id, after
    )
    if not found:
        # Raises an error if the batch does not exist.
        await caller.client.batch(id).get()
    return schemas.Jobs(
        jobs=schemas.job_lines(found),
        next=None if upto is None else await pages.cursor(upto),
    )


@router.get("/{id}/duplicates")
async def list_duplicates(
    caller: Reader, id: UUID, size: Size = 100, cursor: Cursor = None
) -> schemas.Duplicates:
    """The items without a job of their own, in the order of submission, each with the job that it
    duplicates."""
    pages = Pages(caller, f"duplicates of {id}")
    (after,) = await pages.place(cursor, int) or (-1,)
    found = await caller.client.store.duplicates.page(id, after, size + 1)
    if not found:
        # Raises an error if the batch does not exist.
        await caller.client.batch(id).get()
    return schemas.Duplicates(
        duplicates=[schemas.Duplicate.of(each) for each in found[:size]],
        next=await pages.next(found, size, lambda each: (each.position,)),
    )


@router.get(
    "/{id}/results",
    response_class=Response,
    responses={200: {"model": schemas.Results, "description": "The results so far, merged."}},
)
async def get_results(request: Request, service: AnyService, caller: Reader, id: UUID) -> Response:
    """Results in the order of submission, with the failed and cancelled jobs and the duplicates."""
    service.downloads.check_room(caller.tenant)
    body = schemas.batch(await caller.client.batch(id).get(), request)
    chunks = merged(caller.client.store, body)
    return service.downloads.response(caller.tenant, chunks, media_type="application/json")


@router.post("/{id}/cancel")
async def cancel_batch(caller: Submitter, id: UUID) -> schemas.Counted:
    """Waiting jobs never start, running jobs are interrupted."""
    return schemas.Counted(jobs=await caller.client.batch(id).cancel())


@router.post("/{id}/retry")
async def retry_batch(caller: Submitter, id: UUID) -> schemas.Counted:
    """Retries all failed jobs."""
    retried = await caller.client.batch(id).retry()
    return schemas.Counted(jobs=retried)


@router.delete("/{id}", status_code=204)
async def delete_batch(caller: Submitter, id: UUID) -> None:
    """Deletes the finished batch with its jobs, results, events and files."""
    await caller.client.batch(id).delete()
