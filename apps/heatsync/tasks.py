"""From a sheet to a schedule: receive → (download) → extract → (ask) → keep, stages of one job."""

from pathlib import Path

from apps.heatsync import ai, extractions, tables
from apps.heatsync.codes import NOT_GIVEN, UNREADABLE
from apps.heatsync.extractions import Kept, Question
from apps.heatsync.models import Extraction, HandedIn, Result, Sheet
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
    Retry,
    SyncJob,
)

# 1, 2 and 4 seconds.
RETRY = Retry(attempts=4, base=1, factor=2, cap=4, jitter=0)
PDF = "application/pdf"
PAGE_BYTES = 2 * MEGABYTE
# Bytes a second. A server that is slower keeps others from their downloads.
PACE = 10_000
READ_SECONDS = 60.0
READ_BYTES = 1_024 * MEGABYTE
ASK_SECONDS = 120.0
# A new number when the layouts are read differently: what was read before is then read again.
LAYOUT = "layout-2"

settings = HeatSyncSettings.read()
mill = Mill(notify=MailSettings.read())


def fetcher_for(most: int, seconds: float) -> Fetcher:
    return Fetcher(
        addresses=Addresses(allow=settings.allowed),
        limits=FetchLimits(size=most, wire=most, total=seconds, pace=PACE),
        contact="HeatSync",
    )


fetcher = fetcher_for(settings.max_pdf_bytes, 60)
# For pages of meets, while someone waits.
pages = fetcher_for(PAGE_BYTES, 15)
# Of each stage, so that downloads keep nobody from reading.
limits = Limits(
    total=settings.extractions, per_tenant=settings.per_visitor, per_batch=settings.per_batch
)


@mill.task(name="heatsync.receive", retry=RETRY, entry=True)
async def receive(job: Job, given: HandedIn) -> Advance | Result:
    """Begins with what a stranger handed in. All visitors share what was read, by the checksum of
    the file: so that is the store's, whatever the payload says."""
    sheet = Sheet(swimmer=given.swimmer, filename=given.filename, url=given.url)
    if given.file is None:
        return Advance(download, sheet)
    record = await job.artifacts.get(given.file)
    return await read_before(job, sheet.but(file=record.reference))


@mill.task(name="heatsync.download", retry=RETRY, limits=limits, timeout=90, rules=NOT_GIVEN)
async def download(job: Job, sheet: Sheet) -> Advance | Result:
    # Uploads came here too before there was `receive`.
    if sheet.file is None:
        await job.progress("downloading", f"Downloading {sheet.filename}")
        sheet = sheet.but(file=await fetched(job, sheet))
    return await read_before(job, sheet)


async def read_before(job: Job, sheet: Sheet) -> Advance | Result:
    """What the same sheet said of the same swimmer; the next stage if nobody has asked."""
    if kept := await extractions.find(job.mill, question_of(sheet)):
        return result_of(sheet, kept)
    return Advance(extract, sheet)


async def fetched(job: Job, sheet: Sheet) -> Artifact:
    async with fetcher.get(sheet.url or "", caller=job.tenant) as response:
        if response.media_type != PDF:
            raise InvalidPdf(f"{sheet.url} is no PDF, but {response.media_type}.")
        return await job.artifacts.save(sheet.filename, response.chunks(), media_type=PDF)


@mill.task(
    name="heatsync.extract",
    retry=RETRY,
    limits=limits,
    process=True,
    timeout=READ_SECONDS,
    memory=READ_BYTES,
    rules=UNREADABLE,
)
def extract(job: SyncJob, sheet: Sheet) -> Advance:
    """Strangers' PDFs are read in a process that can only harm itself."""
    job.progress("extracting", f"Reading {sheet.filename}")
    assert sheet.file is not None
    path = job.artifacts.path(sheet.file)
    if settings.ai is not None:
        text = job.artifacts.save("sheet.txt", read_text(path).encode())
        return Advance("heatsync.ask", sheet.but(text=text))
    return Advance("heatsync.keep", sheet.but(extraction=extracted(path, sheet.swimmer)))


@mill.task(name="heatsync.ask", retry=RETRY, limits=limits, timeout=ASK_SECONDS)
async def ask(job: Job, sheet: Sheet) -> Advance:
    """Lets a model read the text, and believes of its answer what stands there."""
    await job.progress("uploading_to_ai", f"Asking a model to read {sheet.filename}")
    assert settings.ai is not None and sheet.text is not None
    text = (await job.artifacts.read(sheet.text)).decode()
    extraction = await ai.read_with_model(text, sheet.swimmer, settings.ai)
    return Advance(keep, sheet.but(extraction=extraction, text=None))


@mill.task(name="heatsync.keep", retry=RETRY)
async def keep(job: Job, sheet: Sheet) -> Result | None:
    """Gives what was read its code, together with the job's completion."""
    await job.progress("caching", f"Keeping what {sheet.filename} says")
    assert sheet.extraction is not None
    await tables.prepare(job.mill)
    async with job.transaction() as conn:
        kept = await extractions.keep(conn, question_of(sheet), sheet.extraction)
        job.complete(result_of(sheet, kept))


@mill.task(name="heatsync.forget")
async def forget(job: Job) -> None:
    """What is a month old, every night."""
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


def question_of(sheet: Sheet) -> Question:
    assert sheet.file is not None and sheet.file.sha256 is not None
    reader = LAYOUT if settings.ai is None else f"{settings.ai.model}-1"
    return Question(sheet.file.sha256, normalised(sheet.swimmer), reader)


def result_of(sheet: Sheet, kept: Kept) -> Result:
    return Result(
        result_code=kept.code,
        cached=not kept.is_new,
        filename=sheet.filename,
        source_url=sheet.url,
        extraction=kept.extraction,
    )
