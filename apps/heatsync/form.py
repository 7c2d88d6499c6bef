"""The submitted form: a swimmer's name, PDFs and URLs."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import unquote, urldefrag, urlsplit

from fastapi import Request

from apps.heatsync.answers import Refusal
from apps.heatsync.models import SubmittedSheet
from apps.heatsync.settings import HeatSyncSettings
from batchmill import Item, Mill, safe_name
from batchmill.service import Form

LONGEST_NAME = 200
LONGEST_URL = 2_000


class SheetForm:
    """Use `async with form.read():`. If the block fails, the stored files are deleted."""

    def __init__(self, request: Request, mill: Mill, settings: HeatSyncSettings, visitor: str):
        self._form = Form(
            request,
            mill,
            fields=("swimmer", "urls"),
            files=("pdfs",),
            max_files=settings.max_pdfs,
            max_file=settings.max_pdf_bytes,
            max_bytes=(settings.max_pdfs + 1) * settings.max_pdf_bytes,
            media_type="application/pdf",
            tenant=visitor,
        )
        self._most = settings.max_pdfs
        self.sheets: list[SubmittedSheet] = []

    @asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        async with self._form.read() as form:
            swimmer = swimmer_in(form.fields.get("swimmer", ""))
            urls = urls_in(form.fields.get("urls", ""))
            self._check_count(form.files_sent + len(urls))
            files = [file.record for file in form.files]
            self.sheets = [
                *(
                    SubmittedSheet(swimmer=swimmer, filename=file.name, file=file.reference)
                    for file in files
                ),
                *(SubmittedSheet(swimmer=swimmer, filename=name_in(url), url=url) for url in urls),
            ]
            yield

    async def discard(self) -> None:
        await self._form.discard()

    def items(self) -> Iterator[Item]:
        """The digest has the checksum of a file, because a file that is sent again has a new id."""
        for sheet in self.sheets:
            sent = (sheet.swimmer, sheet.filename, sheet.url, sheet.file and sheet.file.sha256)
            yield Item(sheet, digest=json.dumps(sent))

    def _check_count(self, count: int) -> None:
        if not count:
            raise Refusal("NO_PDFS", "At least one PDF file or URL is required.")
        if count > self._most:
            raise Refusal(
                "BATCH_TOO_LARGE",
                f"Maximum {self._most} PDFs per batch. You submitted {count}.",
            )


def swimmer_in(text: str) -> str:
    swimmer = " ".join(text.split())
    if not swimmer:
        raise Refusal("MISSING_SWIMMER", "Swimmer name is required.")
    if len(swimmer) > LONGEST_NAME:
        raise Refusal(
            "MISSING_SWIMMER",
            f"The swimmer's name is too long: the limit is {LONGEST_NAME} characters.",
        )
    return swimmer


def urls_in(text: str) -> list[str]:
    """The URLs in their order, without duplicates."""
    if not text.strip():
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(map(is_url, found)):
        raise Refusal("INVALID_URLS", "urls must be a JSON array of http(s) URLs.")
    return list(dict.fromkeys(urldefrag(url.strip()).url for url in found))


def is_url(text: object) -> bool:
    if not isinstance(text, str) or len(text) > LONGEST_URL:
        return False
    try:
        parts = urlsplit(text.strip())
        return parts.scheme in ("http", "https") and bool(parts.hostname) and text.isprintable()
    except ValueError:
        return False


def name_in(url: str) -> str:
    """The last part of the path, or the host if there is none."""
    parts = urlsplit(url)
    return safe_name(unquote(parts.path).rsplit("/", 1)[-1] or parts.hostname or url)
