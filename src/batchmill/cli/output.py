"""Output: tables for people, JSON for programs, and notes on stderr."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

import typer
from pydantic_core import to_json
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

# Nothing wraps lines in a pipe, so a wide table is not cut there.
PIPE_WIDTH = 240

STYLES = {
    "completed": "green",
    "live": "green",
    "ok": "green",
    "running": "cyan",
    "busy": "cyan",
    "idle": "dim",
    "processing": "cyan",
    "draining": "yellow",
    "partial": "yellow",
    "paused": "yellow",
    "warning": "yellow",
    "failed": "red",
    "lost": "red",
    "broken": "red",
    "cancelled": "magenta",
    "stopped": "dim",
}


def out() -> Console:
    return _console(stderr=False)


def note(text: str | Text) -> None:
    """A message for the user, kept separate from the output that programs read."""
    _console(stderr=True).print(text, soft_wrap=True)


def print_json(data: Any) -> None:
    typer.echo(to_json(data, indent=2))


def print_json_line(data: Any) -> None:
    typer.echo(to_json(data))


def table(*columns: str | Column, rows: Iterable[Iterable[Any]], title: str = "") -> Table:
    # A Column object stores the cells of its table, so each table needs its own copies.
    own = (each if isinstance(each, str) else each.copy() for each in columns)
    shown = Table(*own, title=title, title_justify="left", title_style="bold")
    shown.box, shown.show_edge, shown.padding = box.SIMPLE_HEAD, False, (0, 1, 0, 0)
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else str(cell) for cell in row))
    return shown


def fitting_table(*columns: str | Column, rows: Iterable[Sequence[Any]], at_least: int) -> Table:
    """A table with as many columns as fit, from the left."""
    console, kept = out(), list(rows)
    boundless = console.options.update_width(10_000)
    for count in range(len(columns), at_least, -1):
        shown = table(*columns[:count], rows=(row[:count] for row in kept))
        if console.measure(shown, options=boundless).maximum <= console.width:
            return shown
    return table(*columns[:at_least], rows=(row[:at_least] for row in kept))


def number(header: str) -> Column:
    return Column(header, justify="right", no_wrap=True)


def whole(header: str) -> Column:
    """A column for values that users copy; it is never cut."""
    return Column(header, no_wrap=True, min_width=len(header), overflow="ignore")


def details(rows: dict[str, Any]) -> Table:
    """The fields of one object, one per line."""
    shown = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2, 0, 0))
    for name, value in rows.items():
        shown.add_row(Text(name, "dim"), value if isinstance(value, Text) else str(value))
    return shown


def stacked(parts: Iterable[RenderableType]) -> Group:
    """Puts the parts below each other, with an empty line between them."""
    first, *rest = parts
    return Group(first, *chain.from_iterable(("", part) for part in rest))


def state(name: str) -> Text:
    return Text(name, STYLES.get(name, ""))


@dataclass(frozen=True, slots=True)
class Capped:
    """A count that stopped at a cap."""

    count: int
    cap: int

    def __str__(self) -> str:
        return f"{self.cap:,}+" if self.count >= self.cap else f"{self.count:,}"


def span(seconds: float | None) -> str:
    """A duration in a suitable unit."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    for unit, size, most in (("s", 1, 120), ("min", 60, 7_200), ("h", 3_600, 172_800)):
        if seconds < most:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def moment(at: datetime | None) -> str:
    """The local time; with the date unless it is today."""
    if at is None:
        return "–"
    local = at.astimezone()
    is_today = local.date() == datetime.now().astimezone().date()
    return f"{local:%H:%M:%S}" if is_today else f"{local:%Y-%m-%d %H:%M:%S}"


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)
