"""A form with files: each file makes a job. Its payload is the field `payload`, with the file under
its part's name; all other fields are options of the batch."""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request

from batchmill.domain.artifact import ArtifactRecord
from batchmill.service.caller import Caller
from batchmill.service.json import parsed
from batchmill.service.multipart import Fields, Part, Reader, boundary_of
from batchmill.service.problems import BadRequest
from batchmill.service.requests import bounded
from batchmill.service.service import of_request
from batchmill.submission import Item


class Form:
    def __init__(self, request: Request, caller: Caller):
        self._request = request
        self._caller = caller
        self._settings = of_request(request).settings
        self._files: list[tuple[str, ArtifactRecord]] = []
        self._fields = Fields(self._settings.max_body)
        self._payload: dict[str, Any] = {}
        self.options: dict[str, Any] = {}

    @asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        """Stores the files; if anything goes wrong in the block, none of them is left."""
        boundary = boundary_of(self._request.headers["content-type"])
        chunks = bounded(self._request.stream(), self._settings.max_request)
        try:
            async for part in Reader(chunks, boundary, self._settings.max_parts).parts():
                await self._take(part)
            if not self._files:
                raise BadRequest("The form has no file: send JSON for jobs without files.")
            self._payload = _object("payload", self._fields.pop("payload", "{}"))
            self.options = {name: _value(text) for name, text in self._fields.items()}
            yield
        except BaseException:
            await self.drop()
            raise

    async def drop(self) -> None:
        while self._files:
            await self._drop_last()

    def items(self) -> Iterable[Item]:
        for name, file in self._files:
            # Sent again, the same file has another id.
            digest = json.dumps([self._payload, name, file.name, file.sha256], sort_keys=True)
            yield Item({**self._payload, name: file.reference}, digest=digest)

    async def _take(self, part: Part) -> None:
        if part.file_name is None:
            await self._fields.take(part)
            return
        self._files.append((part.name, await self._store(part)))
        if not part.file_name and not self._files[-1][1].size:
            # A browser's way to say that no file was chosen.
            await self._drop_last()

    async def _drop_last(self) -> None:
        await self._caller.mill.artifacts.delete(self._files.pop()[1].id)

    async def _store(self, part: Part) -> ArtifactRecord:
        return await self._caller.mill.artifacts.save(
            part.file_name or part.name,
            part.chunks,
            media_type=part.media_type,
            at_most=self._settings.max_file,
        )


def _object(name: str, text: str) -> dict[str, Any]:
    found = parsed(text.encode())
    if not isinstance(found, dict):
        raise BadRequest(f"The field {name} is a JSON object.")
    return found


def _value(text: str) -> Any:
    """Forms have only text, which does for names and numbers; labels and lists come as JSON."""
    return parsed(text.encode()) if text.lstrip().startswith(("{", "[")) else text
