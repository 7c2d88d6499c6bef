"""HeatSync's API."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from apps.heatsync import extractions, mail, visitors
from apps.heatsync.answers import ApiRoute, Refusal
from apps.heatsync.calendar import calendar, is_timed
from apps.heatsync.discover import sheets_at
from apps.heatsync.estimate import seconds_for
from apps.heatsync.form import SheetForm, is_url
from apps.heatsync.retries import require_retries_left
from apps.heatsync.schedule import merged
from apps.heatsync.stream import EventTranslator
from apps.heatsync.tables import HEATSYNC
from apps.heatsync.tasks import download, mill, pages, receive, settings
from apps.heatsync.views import state_of
from batchmill import Batch, BatchOptions, BatchRecord, BatchState, JobRecord, NotFound
from batchmill.service import EventStreams, IdempotencyKey, LastEventId, Viewer, client_address

router = APIRouter(prefix="/api", route_class=ApiRoute)

RECENT = 20
# Batches of earlier versions began with a download. Batches are kept for a month.
FIRST_STAGES = (receive.name, download.name)
# Mails contain the labels, and may go to strangers, so labels have no text from users.
LABELS = {"title": "Your heat sheets"}
LONGEST_TEXT = 500
BATCH = "/batch/{id}"
# Anyone who has the id of a batch may follow it.
EVERYONE = Viewer(mill, None)


class NotifyBody(BaseModel):
    email: Annotated[str, Field(min_length=3, max_length=254, pattern=r"^[^@\s/:]+@[^@\s/:]+$")]


class MeetBody(BaseModel):
    url: str


async def batch_of(id: str) -> Batch:
    """The batch as its visitor, so that retries count against the visitor's quota. Accepts only
    batches of HeatSync: the database may also have those of other applications."""
    record = await mill.batch(id).get()
    if not is_ours(record):
        raise NotFound(f"There is no batch {id}.")
    return mill.as_tenant(record.tenant).batch(record.id)


def is_ours(batch: BatchRecord) -> bool:
    return batch.task in FIRST_STAGES and visitors.is_visitor(batch.tenant)


OurBatch = Annotated[Batch, Depends(batch_of)]


async def all_of(batch: Batch) -> list[JobRecord]:
    return [job async for job in batch.jobs()]


@router.post("/batch/extract")
async def extract_batch(request: Request, idempotency_key: IdempotencyKey = None) -> dict[str, Any]:
    visitor = await visitors.tenant_of(mill, request)
    form = SheetForm(request, mill, settings, visitor)
    options: BatchOptions = {"labels": LABELS}
    if idempotency_key is not None:
        options["idempotency_key"] = idempotency_key
    recent = await mill.batches(task=receive.name, state=BatchState.COMPLETED, count=RECENT)
    async with form.read():
        async with mill.transaction(idempotency_key=idempotency_key, tenant=visitor) as conn:
            client = mill.as_tenant(visitor)
            batch = await client.submit(receive, form.items(), connection=conn, **options)
            if not batch.is_existing:
                await HEATSYNC.row(conn, "keep_asker", batch=batch.id, **asker_of(request))
        if batch.is_existing:
            await form.discard()
    return {
        "success": True,
        "batchId": batch.id,
        "totalJobs": len(form.sheets),
        "streamUrl": f"/api/batch/{batch.id}/stream",
        "estimatedTime": seconds_for(len(form.sheets), recent, settings.per_batch),
    }


def asker_of(request: Request) -> dict[str, str]:
    """Who sent the request. Only trusted proxies can change the address."""
    fields = {
        "user_agent": request.headers.get("user-agent", ""),
        "referrer": request.headers.get("referer", ""),
        "client_address": client_address(request),
    }
    return {name: text[:LONGEST_TEXT] for name, text in fields.items()}


@router.get(BATCH + "/stream")
async def follow_batch(streams: EventStreams, batch: OurBatch, after: LastEventId) -> Response:
    translator = EventTranslator(mill, batch)
    return await streams.follow(EVERYONE, batch.id, after, show=translator.show)


@router.get(BATCH)
async def get_batch(batch: OurBatch) -> dict[str, Any]:
    return {"success": True, **await state_of(batch)}


@router.get(BATCH + "/results")
async def get_results(batch: OurBatch) -> dict[str, Any]:
    return merged(await all_of(batch))


@router.get(BATCH + "/calendar.ics")
async def get_calendar(batch: OurBatch) -> Response:
    swims = merged(await all_of(batch))["events"]
    return Response(
        calendar(swims, datetime.now(UTC)),
        media_type="text/calendar",
        headers={
            "Content-Disposition": 'attachment; filename="heatsync.ics"',
            "X-Untimed-Events": str(sum(not is_timed(swim) for swim in swims)),
        },
    )


@router.post(BATCH + "/cancel")
async def cancel_batch(batch: OurBatch) -> dict[str, Any]:
    return {"success": True, "cancelledJobs": await batch.cancel()}


@router.post(BATCH + "/retry")
async def retry_batch(batch: OurBatch) -> dict[str, Any]:
    await require_retries_left(batch)
    return {"success": True, "retriedJobs": await batch.retry()}


@router.post(BATCH + "/jobs/{job_id}/retry")
async def retry_job(batch: OurBatch, job_id: str) -> dict[str, Any]:
    number = int(job_id) if job_id.isascii() and job_id.isdecimal() else 0
    record = await mill.job(number).get()
    if record.batch_id != batch.id:
        raise NotFound(f"Batch {batch.id} has no job {job_id}.")
    await require_retries_left(batch)
    await mill.as_tenant(record.tenant).job(number).retry()
    return {"success": True}


@router.post(BATCH + "/notify")
async def notify(request: Request, batch: OurBatch, body: NotifyBody) -> dict[str, Any]:
    visitors.enforce_rate(visitors.mails, request)
    await mail.add_recipient(mill, batch, body.email)
    return {"success": True}


@router.get("/result/{code}")
async def get_result(request: Request, code: str) -> dict[str, Any]:
    """Wrong codes count against a limit, so that codes cannot be guessed."""
    visitors.enforce_rate(visitors.guesses, request)
    stored = await extractions.get(mill, code)
    if stored is None:
        raise NotFound(f"There is no result {code}.")
    visitors.guesses.give_back(client_address(request))
    extraction = stored.extraction
    return {
        "success": True,
        "resultCode": stored.code,
        "eventCount": len(extraction.events),
        **extraction.model_dump(by_alias=True, mode="json"),
    }


@router.post("/meets/discover")
async def discover(request: Request, body: MeetBody) -> dict[str, Any]:
    if not is_url(body.url):
        raise Refusal("INVALID_URLS", "Give the http(s) address of a meet's page.")
    visitors.enforce_rate(visitors.discoveries, request)
    title, links = await sheets_at(body.url, pages, client_address(request))
    pdfs = [{"url": link.url, "title": link.name, "likely": link.is_likely} for link in links]
    return {"success": True, "title": title, "pdfs": pdfs}
