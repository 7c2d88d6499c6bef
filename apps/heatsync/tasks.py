"""The stages of a job: receive → (download) → extract → (ask) → keep."""

from dataclasses import replace
from pathlib import Path

from apps.heatsync import ai, extractions, tables
from apps.heatsync.codes import DOWNLOAD_RULES, READ_RULES
from apps.heatsync.extractions import ExtractionKey, StoredExtraction
from apps.heatsync.models import Extraction, Result, Sheet, SubmittedSheet
from apps.heatsync.reader import InvalidPdf, find_swims, normalised, read_sheet, read_text
from apps.heatsync.settings import MEGABYTE, HeatSyncSettings, MailSettings
from batchmill import (
    Addresses,
    Advance,
    Artifact,
    Fetcher,
    FetchLimits,
    Job,
    Limits,
    Mill,
    Pipeline,
    Retry,
    SyncJob,
)

# Retries after 1, 2 and 4 seconds. The server of a PDF, which can be anyone's, may ask for 60.
RETRY = Retry(attempts=4, base=1, factor=2, cap=4, jitter=0, max_retry_after=60)
# The provider of the model may ask for as long as a visitor is likely to wait.
ASK_RETRY = replace(RETRY, max_retry_after=600)
PDF = "application/pdf"
PAGE_BYTES = 2 * MEGABYTE
# Bytes per second. A slower server would block the downloads of others.
PACE = 10_000
READ_SECONDS = 60.0
READ_BYTES = 1_024 * MEGABYTE
ASK_SECONDS = 120.0
# Increase the number when the reader changes, so that sheets are read again.
LAYOUT = "layout-2"

settings = HeatSyncSettings.read()
mill = Mill(notify=MailSettings.read(), schemas=[tables.HEATSYNC])


def fetcher_for(most: int, seconds: float) -> Fetcher:
    return Fetcher(
        addresses=Addresses(allow=settings.allowed),
        limits=FetchLimits(size=most, wire=most, total=seconds, pace=PACE),
        contact="HeatSync",
    )


fetcher = fetcher_for(settings.max_pdf_bytes, 60)
# For pages of meets. The timeout is short because a user waits.
pages = fetcher_for(PAGE_BYTES, 15)
model = ai.client_of(settings.ai) if settings.ai else None
# The stages share their slots. What has begun goes first: the priority rises from stage to stage.
sheets = Pipeline(
    "heatsync",
    limits=Limits(
        total=settings.total, per_tenant=settings.per_visitor, per_batch=settings.per_batch
    ),
)
# Slow servers cannot take the slots of the other stages.
downloads = Limits(total=(settings.total + 1) // 2)


@mill.task(pipeline=sheets, retry=RETRY, entry=True)
async def receive(job: Job, given: SubmittedSheet) -> Advance | Result:
    """The entry point.

    All visitors share extractions by the checksum of the file. So the checksum comes from the
    store, and the one in the payload is ignored.
    """
    sheet = Sheet(swimmer=given.swimmer, filename=given.filename, url=given.url)
    if given.file is None:
        return Advance(download, sheet)
    record = await job.artifacts.get(given.file)
    return await stored_or_extract(job, sheet.updated(file=record.reference))


@mill.task(pipeline=sheets, limits=downloads, retry=RETRY, timeout=90, rules=DOWNLOAD_RULES)
async def download(job: Job, sheet: Sheet) -> Advance | Result:
    # Jobs of earlier versions begin here with an uploaded file.
    if sheet.file is None:
        await job.progress("downloading", f"Downloading {sheet.filename}")
        sheet = sheet.updated(file=await fetched(job, sheet))
    return await stored_or_extract(job, sheet)


async def stored_or_extract(job: Job, sheet: Sheet) -> Advance | Result:
    """Completes with the stored extraction of this sheet and swimmer, or advances."""
    if stored := await extractions.find(job.mill, key_of(sheet), job.tenant):
        return result_of(sheet, stored)
    return Advance(extract, sheet)


async def fetched(job: Job, sheet: Sheet) -> Artifact:
    async with fetcher.get(sheet.url or "", caller=job.tenant) as response:
        if response.media_type != PDF:
            raise InvalidPdf(
                f"{sheet.url} is not a PDF: its content type is {response.media_type}."
            )
        return await job.artifacts.save(sheet.filename, response.chunks(), media_type=PDF)


@mill.task(
    pipeline=sheets,
    priority=1,
    retry=RETRY,
    process=True,
    timeout=READ_SECONDS,
    memory=READ_BYTES,
    rules=READ_RULES,
)
def extract(job: SyncJob, sheet: Sheet) -> Advance:
    """Runs in a child process, because a PDF from a stranger may crash it."""
    job.progress("extracting", f"Reading {sheet.filename}")
    assert sheet.file is not None
    path = job.artifacts.path(sheet.file)
    if settings.ai is not None:
        text = job.artifacts.save("sheet.txt", read_text(path).encode())
        return Advance("heatsync.ask", sheet.updated(text=text))
    return Advance("heatsync.keep", sheet.updated(extraction=extracted(path, sheet.swimmer)))


@mill.task(pipeline=sheets, priority=2, retry=ASK_RETRY, timeout=ASK_SECONDS)
async def ask(job: Job, sheet: Sheet) -> Advance:
    """Asks a model, and accepts only what the text confirms."""
    await job.progress("uploading_to_ai", f"Reading {sheet.filename} with an AI model")
    assert model is not None and sheet.text is not None
    text = (await job.artifacts.read(sheet.text)).decode()
    extraction = await ai.read_with_model(text, sheet.swimmer, model, job)
    return Advance(keep, sheet.updated(extraction=extraction, text=None))


@mill.task(pipeline=sheets, priority=3, retry=RETRY)
async def keep(job: Job, sheet: Sheet) -> Result | None:
    """Stores the extraction in the transaction that completes the job."""
    await job.progress("caching", f"Saving the entries of {sheet.filename}")
    assert sheet.extraction is not None
    async with job.transaction() as conn:
        stored = await extractions.keep(conn, key_of(sheet), sheet.extraction, job.tenant)
        job.complete(result_of(sheet, stored))


@mill.task(pipeline=sheets)
async def forget(job: Job) -> None:
    """Deletes rows that were not used for a month. A schedule runs it every night."""
    await tables.forget_old(job.mill)


def extracted(path: Path, swimmer: str) -> Extraction:
    sheet = read_sheet(path)
    swims = find_swims(sheet.swims, swimmer)
    return Extraction(
        swimmer_name=swims[0].swimmer_name or swimmer,
        meet_name=sheet.meet_name,
        session_date=swims[0].session_date,
        venue=sheet.venue,
        events=swims,
        warnings=sheet.warnings,
    )


def key_of(sheet: Sheet) -> ExtractionKey:
    assert sheet.file is not None and sheet.file.sha256 is not None
    reader = LAYOUT if settings.ai is None else f"{settings.ai.model}-1"
    return ExtractionKey(sheet.file.sha256, normalised(sheet.swimmer), reader)


def result_of(sheet: Sheet, stored: StoredExtraction) -> Result:
    return Result(
        result_code=stored.code,
        cached=not stored.is_new,
        filename=sheet.filename,
        source_url=sheet.url,
        extraction=stored.extraction,
    )
