"""The submitted form: a swimmer's name, PDFs and URLs."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, unquote, urldefrag, urlsplit

from fastapi import Request

from apps.heatsync.answers import Refusal
from apps.heatsync.models import SubmittedSheet
from apps.heatsync.settings import MEGABYTE, HeatSyncSettings
from batchmill import ArtifactRecord, ArtifactTooLarge, Mill
from batchmill.domain.artifact import safe_name
from batchmill.service.multipart import Fields, Part, Reader, boundary_of
from batchmill.service.problems import BadRequest
from batchmill.service.requests import bounded
from batchmill.submission import Item

# Far more than a batch may have, so that the error message can name the submitted number.
MOST_PARTS = 1_000
MOST_TEXT = MEGABYTE
FIELDS = ("swimmer", "urls")
WITHOUT_FILES = "application/x-www-form-urlencoded"
LONGEST_NAME = 200
LONGEST_URL = 2_000


class Form:
    """Use `async with form.read():`. If the block fails, the stored files are deleted."""

    def __init__(self, request: Request, mill: Mill, settings: HeatSyncSettings, visitor: str):
        self._request = request
        self._mill = mill
        self._settings = settings
        self._visitor = visitor
        self._fields = Fields(MOST_TEXT)
        self._files: list[ArtifactRecord] = []
        self._given = 0
        self.swimmer = ""
        self.sheets: list[SubmittedSheet] = []

    @asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        try:
            await self._take_parts()
            self.swimmer = swimmer_in(self._fields.get("swimmer", ""))
            urls = urls_in(self._fields.get("urls", ""))
            self._check_count(self._given + len(urls))
            self.sheets = [
                *(
                    SubmittedSheet(swimmer=self.swimmer, filename=file.name, file=file.reference)
                    for file in self._files
                ),
                *(
                    SubmittedSheet(swimmer=self.swimmer, filename=name_in(url), url=url)
                    for url in urls
                ),
            ]
            yield
        except BaseException:
            await self.drop()
            raise

    async def drop(self) -> None:
        while self._files:
            await self._mill.artifacts.delete(self._files.pop().id)

    def items(self) -> Iterator[Item]:
        """The digest has the checksum of a file, because a file that is sent again has a new id."""
        for sheet in self.sheets:
            sent = (sheet.swimmer, sheet.filename, sheet.url, sheet.file and sheet.file.sha256)
            yield Item(sheet, digest=json.dumps(sent))

    async def _take_parts(self) -> None:
        kind = self._request.headers.get("content-type", "")
        if not kind or kind.lower().startswith(WITHOUT_FILES):
            await self._take_fields()
            return
        boundary = boundary_in(kind)
        most = (self._settings.max_pdfs + 1) * self._settings.max_pdf_bytes
        chunks = bounded(self._request.stream(), most)
        async for part in Reader(chunks, boundary, MOST_PARTS).parts():
            if part.name == "pdfs" and part.file_name:
                await self._take_file(part)
            elif part.name in FIELDS and part.file_name is None:
                await self._fields.take(part)

    async def _take_fields(self) -> None:
        """Reads a form without files, as `curl -d` sends it."""
        sent = b"".join([chunk async for chunk in bounded(self._request.stream(), MOST_TEXT)])
        try:
            given = parse_qs(sent.decode(errors="replace"), max_num_fields=MOST_PARTS)
        except ValueError:
            raise BadRequest(f"The form has too many fields: the limit is {MOST_PARTS}.") from None
        self._fields |= {name: given[name][0] for name in FIELDS if name in given}

    async def _take_file(self, part: Part) -> None:
        """Files over the limit of a batch are counted, but not stored."""
        self._given += 1
        if self._given > self._settings.max_pdfs:
            return
        most = self._settings.max_pdf_bytes
        try:
            saved = await self._mill.artifacts.save(
                part.file_name or "",
                part.chunks,
                media_type="application/pdf",
                tenant=self._visitor,
                at_most=most,
            )
        except ArtifactTooLarge:
            raise Refusal(
                "PDF_TOO_LARGE",
                f"{part.file_name} is larger than {most // MEGABYTE} MB.",
                status=413,
            ) from None
        self._files.append(saved)

    def _check_count(self, count: int) -> None:
        if not count:
            raise Refusal("NO_PDFS", "At least one PDF file or URL is required.")
        if count > self._settings.max_pdfs:
            raise Refusal(
                "BATCH_TOO_LARGE",
                f"Maximum {self._settings.max_pdfs} PDFs per batch. You submitted {count}.",
            )


def boundary_in(content_type: str) -> bytes:
    try:
        return boundary_of(content_type)
    except BadRequest:
        raise Refusal(
            "BAD_REQUEST",
            "Send multipart/form-data with the field swimmer, and with pdfs (files), urls or both.",
        ) from None


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
