"""Follows a batch to its end: live bars in a terminal, otherwise plain lines or JSON lines."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from rich.live import Live

from batchmill.cli.bars import draw_board
from batchmill.cli.board import Board
from batchmill.cli.exits import ExitCode
from batchmill.cli.output import out, print_json_line
from batchmill.domain.batch import BatchRecord, BatchState
from batchmill.domain.event import Event
from batchmill.handles import Batch

FRAMES_PER_SECOND = 10
SECONDS_BETWEEN_LINES = 1.0


class Display(Protocol):
    def saw(self, event: Event) -> None: ...
    def ended(self, batch: BatchRecord) -> None: ...


async def follow_batch(batch: Batch, *, json: bool = False, after: int = 0) -> BatchRecord:
    """Returns the batch after it has ended."""
    record = await batch.get()
    async with display_of(record, json=json) as display:
        async for event in batch.events(after):
            display.saw(event)
        record = await batch.get()
        display.ended(record)
    return record


def exit_code_for(batch: BatchRecord) -> ExitCode:
    is_complete = batch.state is BatchState.COMPLETED
    return ExitCode.DONE if is_complete else ExitCode.WORK_FAILED


@asynccontextmanager
async def display_of(batch: BatchRecord, *, json: bool) -> AsyncIterator[Display]:
    if json:
        yield JsonLines()
    elif not out().is_terminal:
        yield PlainLines(batch)
    else:
        async with LiveBars(batch).shown() as bars:
            yield bars


class JsonLines:
    def saw(self, event: Event) -> None:
        print_json_line(event)

    def ended(self, batch: BatchRecord) -> None:
        """Prints nothing, because the last event contains the end."""


class PlainLines:
    """Prints a line per failure, and at most one line of progress per second."""

    def __init__(self, batch: BatchRecord):
        self._board = Board.of(batch)
        self._console = out()
        self._printed_at = float("-inf")

    def saw(self, event: Event) -> None:
        self._board.see(event)
        if event.type == "job_failed":
            data = event.data
            self._print(
                f"job {event.job_id} failed in {data['task']}: {data['code']}: {data['message']}"
            )
        if time.monotonic() - self._printed_at >= SECONDS_BETWEEN_LINES:
            self._printed_at = time.monotonic()
            self._print(progress_line(self._board))

    def ended(self, batch: BatchRecord) -> None:
        self._print(progress_line(self._board))
        self._print(f"batch {batch.id} {batch.state}")

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)


def progress_line(board: Board) -> str:
    stages = ", ".join(
        f"{stage.name} {stage.left:,} of {board.expected(stage):,}"
        for stage in board.stages.values()
    )
    duplicates = f", {board.duplicates:,} duplicate" if board.duplicates else ""
    ended = f"{board.ended:,} of {board.total:,} ended, {board.failed:,} failed"
    return f"{ended}{duplicates} ({stages})"


class LiveBars:
    def __init__(self, batch: BatchRecord):
        self._board = Board.of(batch)
        self._title = f"Batch {batch.id}"
        self._seen_at = time.monotonic()
        self._live = Live(console=out(), auto_refresh=False)

    @asynccontextmanager
    async def shown(self) -> AsyncIterator["LiveBars"]:
        with self._live:
            drawing = asyncio.create_task(self._draw_often())
            try:
                yield self
            finally:
                drawing.cancel()
                self._draw()

    def saw(self, event: Event) -> None:
        self._board.see(event)
        self._seen_at = time.monotonic()

    def ended(self, batch: BatchRecord) -> None:
        self._board.state = batch.state

    async def _draw_often(self) -> None:
        while True:
            self._draw()
            await asyncio.sleep(1 / FRAMES_PER_SECOND)

    def _draw(self) -> None:
        quiet = time.monotonic() - self._seen_at
        self._live.update(draw_board(self._board, self._title, quiet), refresh=True)
