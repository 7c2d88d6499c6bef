"""Draws a board as bars."""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from batchmill.cli.board import Board, Failure, Stage
from batchmill.cli.output import span, state

NARROWEST = 10
LONG_QUIET = 5.0


@dataclass(frozen=True, slots=True)
class Bar:
    """Coloured parts of a total, over the available width."""

    parts: tuple[tuple[int, str], ...]
    total: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, drawn, sum_so_far = options.max_width, Text(no_wrap=True, end=""), 0
        glyph = "#" if options.ascii_only else "━"
        for amount, style in self.parts:
            sum_so_far += amount
            # Round down, so that a bar is full only when everything is complete.
            upto = width * sum_so_far // max(self.total, 1)
            drawn.append(glyph * (min(upto, width) - len(drawn)), style)
        drawn.append(("." if options.ascii_only else "─") * (width - len(drawn)), "dim")
        yield drawn

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(NARROWEST, options.max_width)


def draw_board(board: Board, title: str, quiet: float) -> RenderableType:
    """`quiet` is the number of seconds since the newest event."""
    heading = Text.assemble((title, "bold"), "  ", state(board.state), "  ", span(board.seconds))
    if quiet > LONG_QUIET and board.ended < board.total:
        heading.append(f"  no events for {span(quiet)}", "yellow")
    return Group(heading, _bars(board), *_failures(board.failures))


def _bars(board: Board) -> Table:
    shown = Table.grid(
        Column(no_wrap=True, overflow="ellipsis", max_width=28),
        Column(ratio=1),
        Column(justify="right", no_wrap=True),
        Column(no_wrap=True),
        padding=(0, 2, 0, 0),
        expand=True,
    )
    shown.add_row(
        "all", _batch_bar(board), f"{board.ended:,} of {board.total:,}", _batch_words(board)
    )
    for stage in board.stages.values():
        expected = board.expected(stage)
        shown.add_row(
            stage.name,
            _stage_bar(stage, expected),
            f"{stage.left:,} of {expected:,}",
            _words(stage),
        )
    return shown


def _batch_bar(board: Board) -> Bar:
    parts = (
        (board.completed, "bold green"),
        (board.failed, "bold red"),
        (board.cancelled, "magenta"),
    )
    return Bar(parts, board.total)


def _stage_bar(stage: Stage, expected: int) -> Bar:
    parts = (
        (stage.advanced + stage.completed, "green"),
        (stage.failed, "red"),
        (stage.cancelled, "magenta"),
        (stage.running, "cyan"),
    )
    return Bar(parts, expected)


def _batch_words(board: Board) -> Text:
    return _joined(
        (board.failed, "failed", "red"),
        (board.cancelled, "cancelled", "magenta"),
        (board.retries, "retried", "yellow"),
        (board.duplicates, "duplicate", "dim"),
    )


def _words(stage: Stage) -> Text:
    return _joined((stage.running, "running", "cyan"))


def _joined(*counts: tuple[int, str, str]) -> Text:
    parts = [Text(f"{count:,} {word}", style) for count, word, style in counts if count]
    return Text(", ").join(parts)


def _failures(failures: Iterable[Failure]) -> Iterable[RenderableType]:
    for failure in failures:
        yield Text.assemble(
            (f"job {failure.job_id} ", "dim"),
            f"{failure.task}: ",
            (failure.code, "red"),
            f" {failure.message}",
            no_wrap=True,
            overflow="ellipsis",
        )
