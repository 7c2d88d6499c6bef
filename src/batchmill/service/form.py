"""Forms: text fields, which are held in memory, and files, which are stored while they arrive."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import NamedTuple, Self

from fastapi import Request

from batchmill.client import Client
from batchmill.domain.artifact import ArtifactRecord
from batchmill.errors import ArtifactTooLarge
from batchmill.service.multipart import Fields, Part, Reader, boundary_of, encoded_fields
from batchmill.service.problems import TooLarge
from batchmill.service.requests import bounded
from batchmill.service.service import of_request

log = logging.getLogger("batchmill.service")

WITHOUT_FILES = "application/x-www-form-urlencoded"
MOST_TEXT = 1_048_576


class FileTooLarge(ArtifactTooLarge):
    """A file of a form is larger than the `limit` in bytes; `file_name` is its name."""

    def __init__(self, file_name: str, limit: int):
        super().__init__(f"{file_name} is larger than the limit of {limit:,} bytes.")
        self.file_name = file_name
        self.limit = limit


class FormFile(NamedTuple):
    """A stored file, and the name of the field that it was sent in."""

    field: str
    record: ArtifactRecord


class Form:
    """A form of a request, with or without files.

        form = Form(request, caller.client, fields={"title"}, files={"notes"}, max_files=10)
        async with form.read():
            notes = [Note(form.fields["title"], file.record.reference) for file in form.files]
            batch = await caller.client.submit(count_words, notes)

    The files are deleted if the block raises, and by `discard`: use it if an idempotent submit
    returned an existing batch. Fields and files with other names are ignored. `max_file` and
    `max_bytes` limit each file and the whole body; the settings of the service are the default.
    `media_type` is the type of all files; by default, each file has the type that the client sent.
    """

    def __init__(
        self,
        request: Request,
        client: Client,
        *,
        fields: Collection[str] = (),
        files: Collection[str] = (),
        max_files: int = 100,
        max_file: int | None = None,
        max_bytes: int | None = None,
        media_type: str | None = None,
        tenant: str | None = None,
    ):
        settings = of_request(request).settings
        self.fields = Fields(MOST_TEXT)
        self.files_sent = 0
        self._request = request
        self._artifacts = client.artifacts
        self._field_names = fields
        self._file_names = files
        self._max_files = max_files
        self._max_file = max_file or settings.max_file
        self._max_bytes = max_bytes or settings.max_request
        self._max_parts = settings.max_parts
        self._media_type = media_type
        self._tenant = tenant
        self._stored: list[FormFile] = []

    @property
    def files(self) -> list[FormFile]:
        """The stored files. Raises TooLarge if more than `max_files` were sent: `files_sent` is
        their number."""
        if self.files_sent > self._max_files:
            raise TooLarge(f"The form has {self.files_sent} files. The limit is {self._max_files}.")
        return self._stored

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Self]:
        try:
            kind = self._request.headers.get("content-type", "")
            if not kind or kind.lower().startswith(WITHOUT_FILES):
                await self._take_text()
            else:
                await self._take_parts(boundary_of(kind))
            yield self
        except BaseException:
            await asyncio.shield(self._give_up())
            raise

    async def _give_up(self) -> None:
        """Deletes what can be deleted. The caller gets the error of the block, not one of these:
        for example, if the block failed after its submit, the batch needs the files."""
        while self._stored:
            file = self._stored[-1].record
            try:
                await self._discard_last()
            except Exception as error:
                log.warning(
                    "The file %s of a form that failed is not deleted. If no batch needs it, the "
                    "upkeep deletes it after a day: %s",
                    file.id,
                    error,
                )

    async def discard(self) -> None:
        """Deletes the stored files."""
        while self._stored:
            await self._discard_last()

    async def _discard_last(self) -> None:
        await self._artifacts.delete(self._stored.pop().record.id)

    async def _take_text(self) -> None:
        """Reads a form without files, as `curl -d` sends it."""
        sent = b"".join([chunk async for chunk in bounded(self._request.stream(), MOST_TEXT)])
        for part in encoded_fields(sent, self._max_parts):
            await self._take(part)

    async def _take_parts(self, boundary: bytes) -> None:
        chunks = bounded(self._request.stream(), self._max_bytes)
        async for part in Reader(chunks, boundary, self._max_parts).parts():
            await self._take(part)

    async def _take(self, part: Part) -> None:
        # Browsers send a part with an empty file name when the user chose no file.
        if part.name in self._file_names and part.file_name:
            await self._take_file(part, part.file_name)
        elif part.name in self._field_names and part.file_name is None:
            await self.fields.take(part)

    async def _take_file(self, part: Part, file_name: str) -> None:
        """Files over `max_files` are counted, but not stored."""
        self.files_sent += 1
        if self.files_sent > self._max_files:
            return
        try:
            record = await self._artifacts.save(
                file_name,
                part.chunks,
                media_type=self._media_type or part.media_type,
                tenant=self._tenant,
                at_most=self._max_file,
            )
        except ArtifactTooLarge:
            raise FileTooLarge(file_name, self._max_file) from None
        self._stored.append(FormFile(part.name, record))
