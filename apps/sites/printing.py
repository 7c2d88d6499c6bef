"""Reports as PDF. They are printed in a child process, because laying out computes for seconds, and
texts of strangers may crash it. The application itself submits these jobs, so they use up nothing
of the user's quota of operations."""

from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from typing import Any
from uuid import UUID

from apps.sites import runs
from apps.sites.mill import mill
from apps.sites.models import Model
from apps.sites.report import Report
from apps.sites.report.printed import html_of
from batchmill import (
    Artifact,
    Client,
    JobFailed,
    Limits,
    Permanent,
    Retry,
    ServerBusy,
    StorageExceeded,
    SyncJob,
)

PRINTERS = 1
PRINT_SECONDS = 60.0
PRINT_BYTES = 768 * 1_048_576
# A request waits at most so long, also for reports of others.
PATIENCE = 90.0
DAY = 86_400
# To be raised when printed reports look different, so that none from before is sent.
EDITION = 1
PDF = "application/pdf"
DEFAULT_TENANT = "default"


class PrintOrder(Model):
    """The report to print, when its run ended, and what the file is called."""

    report: Artifact
    at: datetime
    name: str


def prepare() -> None:
    """Loads the library and the fonts, which takes longer than printing."""
    pdf_from("<title>Nothing</title>")


def pdf_from(html: str) -> bytes:
    # WeasyPrint prints advice that is for its own users.
    try:
        with redirect_stdout(StringIO()):
            from apps.sites.report import paper
    except OSError as error:
        raise Permanent(
            "The PDF cannot be made, because Pango is missing on the server. "
            "Run bin/install-servers apps on it.",
            code="printer_missing",
        ) from error
    return paper.pdf_from(html)


@mill.task(
    name="sites.print",
    process=True,
    prepare=prepare,
    # Somebody waits for it, and asks again.
    retry=Retry(attempts=1),
    timeout=PRINT_SECONDS,
    memory=PRINT_BYTES,
    limits=Limits(total=PRINTERS),
)
def print_report(job: SyncJob, order: PrintOrder) -> Artifact:
    report = Report.model_validate_json(job.artifacts.read(order.report))
    pdf = pdf_from(html_of(report, order.at))
    try:
        return job.artifacts.save(order.name, pdf, media_type=PDF)
    except StorageExceeded as error:
        raise Permanent(str(error), code=error.code) from None


async def report_pdf(client: Client, run: dict[str, Any]) -> UUID:
    """The id of the PDF of a run's report. The same report is printed once a day."""
    report = runs.report_file(run)
    key = f"{report} {EDITION}"
    order = PrintOrder(
        report=Artifact(artifact=report),
        at=run["finished_at"].astimezone(UTC),
        name=file_name(run["site"]),
    )
    job = await mill.enqueue(
        print_report,
        order,
        tenant=client.tenant or DEFAULT_TENANT,
        dedup_key=key,
        cache_key=key,
        expires_in=DAY,
    )
    try:
        made: Artifact = await job.result(PATIENCE)
    except TimeoutError:
        raise ServerBusy("The report takes too long to print. Try again later.") from None
    except JobFailed as error:
        raise refusal(error) from None
    return made.artifact


def refusal(error: JobFailed) -> Exception:
    if error.error_code == "timeout":
        return Permanent("The report is too long for a PDF. Download it as JSON.", code="too_long")
    if error.error_code in ("printer_missing", "storage_exceeded"):
        return Permanent(str(error), code=error.error_code)
    return Permanent(
        "The PDF could not be made. Try again, or download the report as JSON.",
        code="printing_failed",
    )


def file_name(site: str) -> str:
    return f"report-{site.replace(':', '-')}.pdf"
