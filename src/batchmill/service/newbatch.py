"""The JSON body of a submit: items are read one by one, and from a file only if there are many.

The body is read twice. The first pass checks all of it before anything is written to the database.
The second pass reads each item again, passes it to the submission and discards it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.requests import ClientDisconnect

from batchmill.errors import InvalidInput
from batchmill.service.caller import caller_of
from batchmill.service.faults import faults_of_job, unknown_names, validated
from batchmill.service.json import DEEPEST, LONG, Scanner
from batchmill.service.problems import MOST_FAULTS, BadRequest, TooLarge
from batchmill.service.requests import MOST_OPTIONS, SMALL, bounded, most_payload
from batchmill.service.schemas import NewBatch, NewJob
from batchmill.service.service import Service, of_request
from batchmill.submission import CALL_JOBS, MOST_JOBS, Blocks, Item, Slow

IN_MEMORY = 262_144
MOST_NAME = 1_000
LISTS = ("items", "jobs")
# Nesting levels that remain inside an object (an option), and inside a list in it (an item).
DEEPEST_OPTION = DEEPEST - 1
DEEPEST_ITEM = DEEPEST - 2
# Limits how long other requests wait. Most of the time goes into validating the task's types.
BLOCK_ITEMS = 300
BLOCK_CHARACTERS = 16_384


class NewBatchBody:
    def __init__(
        self,
        file: IO[bytes],
        service: Service,
        tenant: str,
        is_gone: Callable[[], Awaitable[bool]] | None = None,
    ):
        self._is_gone = is_gone
        self._file = file
        self._reading = service.reading
        self._tenant = tenant
        self._most_item = most_payload(service)
        self._list: str | None = None
        self._large = file.tell() > SMALL

    @classmethod
    @asynccontextmanager
    async def read(cls, request: Request) -> AsyncIterator["NewBatchBody"]:
        service, caller = of_request(request), await caller_of(request)
        with SpooledTemporaryFile(IN_MEMORY) as file:
            async for chunk in bounded(request.stream(), service.settings.max_body):
                file.write(chunk)
            yield cls(file, service, caller.tenant, request.is_disconnected)

    async def check(self) -> NewBatch:
        """Returns everything but the items, and checks that the items can be read."""
        scanner = Scanner(self._file)
        if scanner.next() == "{":
            found = await self._check_object(scanner)
        else:
            found = await self._option(scanner, MOST_OPTIONS)
        if scanner.next():
            raise BadRequest("The body is not acceptable JSON: there is text after the value.")
        return validated(NewBatch, found)

    def items(self) -> Blocks:
        return Blocks(self._blocks(), large=self._large)

    async def _check_object(self, scanner: Scanner) -> dict[str, Any]:
        """Reads the options. Refuses an unknown name before it reads the value."""
        found: dict[str, Any] = {}
        size = 0
        for name in _names(scanner):
            if name in found:
                raise BadRequest(
                    f"The body is not acceptable JSON: the name {name!r} occurs twice."
                )
            if faults := unknown_names(NewBatch, [name]):
                raise RequestValidationError(faults)
            if name in LISTS and scanner.next() == "[":
                self._list = name
                await self._check_list(scanner, name)
                found[name] = []
            else:
                begin = scanner.passed
                found[name] = await self._option(scanner, MOST_OPTIONS - size)
                size += scanner.passed - begin
        return found

    async def _check_list(self, scanner: Scanner, name: str) -> None:
        count = 0
        faults: list[Any] = []
        async for block in self._read_list(scanner):
            # Items are payloads, which the submission checks. Jobs are objects with options.
            for number, item in enumerate(block, count):
                check = _no_faults if name == "items" else partial(faults_of_job, number=number)
                found = await item.given_to(check) if isinstance(item, Slow) else check(item)
                faults += found[: MOST_FAULTS - len(faults)]
            count += len(block)
            if count > MOST_JOBS:
                raise InvalidInput(f"A batch can have at most {MOST_JOBS:,} jobs.")
        if faults:
            raise RequestValidationError(faults)
        self._large |= count > CALL_JOBS

    async def _blocks(self) -> AsyncIterator[list[Any]]:
        scanner = Scanner(self._file)
        for name in _names(scanner):
            if name == self._list:
                async for block in self._read_list(scanner):
                    yield [*map(as_item, block)] if name == "jobs" else block
                return
            await self._option(scanner, MOST_OPTIONS)

    async def _option(self, scanner: Scanner, most: int) -> Any:
        if (found := scanner.short_value(DEEPEST_OPTION)) is LONG:
            read = partial(scanner.value, most, DEEPEST_OPTION)
            return await self._reading.slow(self._tenant, read).given_to(lambda value: value)
        return found

    async def _read_list(self, scanner: Scanner) -> AsyncIterator[list[Any]]:
        """Reads small blocks, each in its own step of the event loop."""
        scanner.skip("[")
        if scanner.next() == "]":
            scanner.skip("]")
            return
        is_last: bool | None = False
        while not is_last:
            if self._is_gone and await self._is_gone():
                raise ClientDisconnect
            await asyncio.sleep(0)
            block, is_last = _read_block(scanner)
            if block:
                yield block
            if is_last is None:
                read = partial(scanner.value, self._most_item, DEEPEST_ITEM)
                yield [self._reading.slow(self._tenant, read)]
                is_last = scanner.skip(",", "]") == "]"


def _read_block(scanner: Scanner) -> tuple[list[Any], bool | None]:
    """Some items, and whether they are the last ones; None if a long item is next."""
    block: list[Any] = []
    end = scanner.passed + BLOCK_CHARACTERS
    is_last = False
    while not is_last and len(block) < BLOCK_ITEMS and scanner.passed < end:
        if (item := scanner.short_value(DEEPEST_ITEM)) is LONG:
            return block, None
        block.append(item)
        is_last = scanner.skip(",", "]") == "]"
    return block, is_last


def _names(scanner: Scanner) -> Iterator[str]:
    """Yields the names of an object. Read the value after each name."""
    scanner.skip("{")
    if scanner.next() == "}":
        scanner.skip("}")
        return
    while True:
        if scanner.next() != '"':
            raise BadRequest("The body is not valid JSON: a name is missing.")
        if (name := scanner.short_value()) is LONG or len(name) > MOST_NAME:
            raise TooLarge(f"A name in the body has more than {MOST_NAME} characters.")
        scanner.skip(":")
        yield name
        if scanner.skip(",", "}") == "}":
            return


def _no_faults(_: Any) -> list[Any]:
    return []


def as_item(job: Any) -> Item | Slow:
    if isinstance(job, Slow):
        return Slow(lambda function: job.given_to(lambda value: function(as_item(value))))
    return Item(**dict(NewJob.model_validate(job)))
