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
from batchmill.service.form import Form
from batchmill.service.json import parsed, whole_value
from batchmill.service.multipart import Fields, Part
from batchmill.service.problems import BadRequest
from batchmill.service.requests import MOST_OPTIONS, SMALL, most_payload
from batchmill.service.schemas import BatchOptionsBody
from batchmill.service.service import of_request
from batchmill.submission import Blocks, Item, Slow

T = TypeVar("T")


class BatchForm(Form):
    def __init__(self, request: Request, caller: Caller):
        service = of_request(request)
        settings = service.settings
        super().__init__(request, caller.client, max_files=settings.max_parts)
        self.fields = Fields(min(MOST_OPTIONS, settings.max_body))
        self._payload = Fields(min(most_payload(service), settings.max_body))
        self._whose = caller.tenant
        self._reading = service.reading

    @asynccontextmanager
    async def options(self) -> AsyncIterator[BatchOptionsBody]:
        """Reads the form. Stores its files, and deletes all of them if the block raises."""
        async with self.read():
            if not self.files:
                raise BadRequest("The form has no file. For jobs without files, send JSON.")
            await self._with_payload(require_object)
            yield _options(self.fields)

    def items(self) -> Blocks:
        return Blocks(self._blocks(), large=len(self.files) * self._payload.size > SMALL)

    async def _blocks(self) -> AsyncIterator[list[Any]]:
        """One payload at a time, held as text, because Python objects may take much more memory."""
        for name, file in self.files:
            yield [Slow(partial(self._give_item, name, file))]

    async def _give_item(self, name: str, file: ArtifactRecord, function: Callable[[Any], T]) -> T:
        return await self._with_payload(lambda payload: function(_item(payload, name, file)))

    async def _with_payload(self, function: Callable[[Any], T]) -> T:
        text = self._payload.get("payload", "{}").encode()
        read = partial(whole_value, BytesIO(text), len(text))
        return await self._reading.slow(self._whose, read).given_to(function)

    async def _take(self, part: Part) -> None:
        if part.file_name is None:
            await (self._payload if part.name == "payload" else self.fields).take(part)
            return
        await self._take_file(part, part.file_name or part.name)
        if not part.file_name and not self.files[-1].record.size:
            # Browsers send an empty part when the user chose no file.
            await self._discard_last()


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
