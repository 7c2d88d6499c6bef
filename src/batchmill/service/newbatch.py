"""The JSON body of a submit: its items are read one by one, and only from a file if there are many.

The body is read twice. First all of it is checked, before anything is written to the database. Then
each item is read again, handed to the submission, and forgotten.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import IO, Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from batchmill.domain.payload import LIMIT
from batchmill.errors import InvalidInput
from batchmill.service.json import DEEPEST, LONG, Scanner
from batchmill.service.problems import MOST_FAULTS, BadRequest
from batchmill.service.requests import bounded
from batchmill.service.schemas import NewBatch, NewJob
from batchmill.service.service import Service, of_request
from batchmill.submission import MOST_JOBS, Blocks, Item, Slow, in_slow_thread

IN_MEMORY = 262_144
# Names and options around the items.
MOST_OPTION = 262_144
MOST_NAMES = 100
LISTS = ("items", "jobs")
# An item inside a list inside an object.
DEEPEST_ITEM = DEEPEST - 2
# What others on the event loop wait for. Most of it is the work of the task's types.
BLOCK_ITEMS = 300
BLOCK_CHARACTERS = 16_384
# An item that is longer goes to a thread.
MOST_SHORT = 8_192

Model = TypeVar("Model", bound=BaseModel)


class NewBatchBody:
    def __init__(self, file: IO[bytes], service: Service):
        self._file = file
        self._service = service
        # Twice what any payload may have: texts may be escaped, and have spaces between them.
        limits = (task.payload_limit for task in service.mill.tasks.values())
        self._most_item = 2 * max(LIMIT, *limits, 0)
        self._list: str | None = None

    @classmethod
    @asynccontextmanager
    async def read(cls, request: Request) -> AsyncIterator["NewBatchBody"]:
        service = of_request(request)
        with SpooledTemporaryFile(IN_MEMORY) as file:
            async for chunk in bounded(request.stream(), service.settings.max_body):
                file.write(chunk)
            yield cls(file, service)

    async def check(self) -> NewBatch:
        """Everything but the items, of which it knows afterwards that they can be read."""
        scanner = Scanner(self._file)
        if scanner.next() != "{":
            found = scanner.value(MOST_OPTION)
        else:
            found = await self._check_object(scanner)
        if scanner.next():
            raise BadRequest("The body is no JSON that can be taken: something comes after it.")
        return validated(NewBatch, found)

    def items(self) -> Blocks:
        return Blocks(self._blocks())

    async def _check_object(self, scanner: Scanner) -> dict[str, Any]:
        found: dict[str, Any] = {}
        async for name in _names(scanner):
            if name in found:
                raise BadRequest(f"The body is no JSON that can be taken: {name!r} comes twice.")
            if len(found) >= MOST_NAMES:
                raise BadRequest(f"The body has more than {MOST_NAMES} names.")
            if name in LISTS and scanner.next() == "[":
                self._list = name
                await self._check_list(scanner, name)
                found[name] = []
            else:
                found[name] = scanner.value(MOST_OPTION, DEEPEST - 1)
        return found

    async def _check_list(self, scanner: Scanner, name: str) -> None:
        count = 0
        faults: list[Any] = []
        async for block in self._read_list(scanner):
            for item in block:
                # A long item is forgotten in the thread that reads it: several requests would each
                # hold one here.
                if isinstance(item, Slow):
                    found = await in_slow_thread(partial(_faults_of_slow, item, name, count))
                else:
                    found = faults_of(item, name, count)
                faults += found[: MOST_FAULTS - len(faults)]
                count += 1
            if count > MOST_JOBS:
                raise InvalidInput(f"A batch holds at most {MOST_JOBS:,} jobs.")
        if faults:
            raise RequestValidationError(faults)

    async def _blocks(self) -> AsyncIterator[list[Any]]:
        scanner = Scanner(self._file)
        async for name in _names(scanner):
            if name == self._list:
                async for block in self._read_list(scanner):
                    yield [*map(as_item, block)] if name == "jobs" else block
                return
            scanner.value(MOST_OPTION)

    async def _read_list(self, scanner: Scanner) -> AsyncIterator[list[Any]]:
        """In small blocks. One request reads one block in each step of the event loop, however many
        requests there are."""
        scanner.skip("[")
        if scanner.next() == "]":
            scanner.skip("]")
            return
        is_last: bool | None = False
        while not is_last:
            async with self._service.reading:
                block, is_last = self._read_block(scanner)
            await asyncio.sleep(0)
            if block:
                yield block
            if is_last is None:
                yield [Slow(partial(scanner.value, self._most_item, DEEPEST_ITEM))]
                is_last = scanner.skip(",", "]") == "]"

    def _read_block(self, scanner: Scanner) -> tuple[list[Any], bool | None]:
        """Some items, and whether they are the last; None if a long item comes next."""
        block: list[Any] = []
        begin = scanner.taken
        while True:
            before = scanner.taken
            if (item := scanner.short_value(DEEPEST_ITEM)) is LONG:
                return block, None
            if scanner.taken - before > MOST_SHORT:
                item = Slow(partial(_same, item))
            block.append(item)
            is_last = scanner.skip(",", "]") == "]"
            is_full = len(block) >= BLOCK_ITEMS or scanner.taken - begin >= BLOCK_CHARACTERS
            if is_last or is_full:
                return block, is_last


def _same(item: Any) -> Any:
    return item


async def _names(scanner: Scanner) -> AsyncIterator[str]:
    """The names of an object; behind each, its value has to be read."""
    scanner.skip("{")
    if scanner.next() == "}":
        scanner.skip("}")
        return
    while True:
        if scanner.next() != '"':
            raise BadRequest("The body is no JSON: a name is missing in it.")
        name = scanner.value(MOST_OPTION)
        scanner.skip(":")
        yield name
        if scanner.skip(",", "}") == "}":
            return


def validated(kind: type[Model], found: Any) -> Model:
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        raise RequestValidationError(in_body(error)) from None


def _faults_of_slow(item: Slow, of_list: str, number: int) -> list[Any]:
    return faults_of(item.read(), of_list, number)


def faults_of(item: Any, of_list: str, number: int) -> list[Any]:
    """Items are payloads, which the submission checks; jobs are objects with options."""
    if of_list == "items":
        return []
    try:
        NewJob.model_validate(item)
    except ValidationError as error:
        return in_body(error, of_list, number)
    return []


def in_body(error: ValidationError, *where: str | int) -> list[Any]:
    """What is wrong, as FastAPI says it."""
    return [{**each, "loc": ("body", *where, *each["loc"])} for each in error.errors()]


def as_item(job: Any) -> Item | Slow:
    if isinstance(job, Slow):
        return Slow(lambda: as_item(job.read()))
    return Item(**dict(NewJob.model_validate(job)))
