"""A form with files: each file becomes a job. The job's payload is the field `payload`, with the
file added under its part's name. All other fields are options of the batch."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from io import BytesIO
from typing import Any, TypeVar

from fastapi import Request

from batchmill.domain.artifact import ArtifactRecord
from batchmill.service.caller import Caller
from batchmill.service.faults import validated
from batchmill.service.json import parsed, whole_value
from batchmill.service.multipart import Fields, Part, Reader, boundary_of
from batchmill.service.problems import BadRequest
from batchmill.service.requests import MOST_OPTIONS, SMALL, bounded, most_payload
from batchmill.service.schemas import BatchOptionsBody
from batchmill.service.service import of_request
from batchmill.submission import Blocks, Item, Slow

T = TypeVar("T")


class Form:
    def __init__(self, request: Request, caller: Caller):
        service = of_request(request)
        self._request = request
        self._caller = caller
        self._settings = service.settings
        self._reading = service.reading
        self._files: list[tuple[str, ArtifactRecord]] = []
        self._fields = Fields(min(MOST_OPTIONS, self._settings.max_body))
        self._payload = Fields(min(most_payload(service), self._settings.max_body))

    @asynccontextmanager
    async def read(self) -> AsyncIterator[BatchOptionsBody]:
        """Stores the files. Deletes all of them if the block raises."""
        boundary = boundary_of(self._request.headers["content-type"])
        chunks = bounded(self._request.stream(), self._settings.max_request)
        try:
            async for part in Reader(chunks, boundary, self._settings.max_parts).parts():
                await self._take(part)
            if not self._files:
                raise BadRequest("The form has no file. For jobs without files, send JSON.")
            await self._with_payload(require_object)
            yield _options(self._fields)
        except BaseException:
            await self.drop()
            raise

    async def drop(self) -> None:
        while self._files:
            await self._drop_last()

    def items(self) -> Blocks:
        return Blocks(self._blocks(), large=len(self._files) * self._payload.size > SMALL)

    async def _blocks(self) -> AsyncIterator[list[Any]]:
        """One payload at a time, held as text, because Python objects may take much more memory."""
        for name, file in self._files:
            yield [Slow(partial(self._give_item, name, file))]

    async def _give_item(self, name: str, file: ArtifactRecord, function: Callable[[Any], T]) -> T:
        return await self._with_payload(lambda payload: function(_item(payload, name, file)))

    async def _with_payload(self, function: Callable[[Any], T]) -> T:
        text = self._payload.get("payload", "{}").encode()
        read = partial(whole_value, BytesIO(text), len(text))
        return await self._reading.slow(self._caller.tenant, read).given_to(function)

    async def _take(self, part: Part) -> None:
        if part.file_name is None:
            await (self._payload if part.name == "payload" else self._fields).take(part)
            return
        self._files.append((part.name, await self._store(part)))
        if not part.file_name and not self._files[-1][1].size:
            # Browsers send an empty part when the user chose no file.
            await self._drop_last()

    async def _drop_last(self) -> None:
        await self._caller.client.artifacts.delete(self._files.pop()[1].id)

    async def _store(self, part: Part) -> ArtifactRecord:
        return await self._caller.client.artifacts.save(
            part.file_name or part.name,
            part.chunks,
            media_type=part.media_type,
            at_most=self._settings.max_file,
        )


def require_object(payload: Any) -> None:
    if not isinstance(payload, dict):
        raise BadRequest("The field payload must be a JSON object.")


def _item(payload: dict[str, Any], name: str, file: ArtifactRecord) -> Item:
    # The digest omits the file's id, because the same file gets a new id when it is sent again.
    digest = json.dumps([payload, name, file.name, file.sha256], sort_keys=True)
    return Item({**payload, name: file.reference}, digest=digest)


def _options(fields: Fields) -> BatchOptionsBody:
    return validated(BatchOptionsBody, {name: _value(text) for name, text in fields.items()})


def _value(text: str) -> Any:
    """Form fields are text. That suffices for names and numbers; labels and lists are JSON."""
    return parsed(text.encode()) if text.lstrip().startswith(("{", "[")) else text
