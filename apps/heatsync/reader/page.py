"""Pages → lines in reading order: down one column, then down the next.

The head of a page spans all columns. Below it, a column begins where a line begins with a header,
an event or a heat. No position is fixed: each page may have different columns.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from apps.heatsync.reader.fields import SEED
from apps.heatsync.reader.headings import EVENT_WORD, HEAT_WORD
from apps.heatsync.reader.page_head import is_about_software, is_session, is_title
from apps.heatsync.reader.pdf import Page
from apps.heatsync.reader.table_header import TableHeader, find_table_headers
from apps.heatsync.reader.words import Word, text_of

# Words whose baselines differ by less, relative to their height, are in one row: times are printed
# smaller than names, and slightly higher.
_SAME_ROW = 0.4
# The distance between columns is more than this fraction of the page's width.
_APART = 0.15
# Letters larger than this multiple of the median size are a watermark.
_LARGE = 4.0
# A field may begin slightly left of the heading that marks the start of its column.
_OUTDENT = 3.0

_HEAT = re.compile(HEAT_WORD)
_BEGINNING = re.compile(rf"{EVENT_WORD}|{HEAT_WORD}")
_RANK = re.compile(r"\*?\d{1,3}")
_NUMBER = re.compile(r"\d+[A-Z]{0,2}(?:/\d+[A-Z]{0,2})?")

Row = list[Word]


@dataclass(frozen=True, slots=True)
class Line:
    """Positions of words are relative to the column, so a header also applies to other columns."""

    page: int
    words: Sequence[Word]
    header: TableHeader | None

    @property
    def text(self) -> str:
        return text_of(self.words)


class PageText(NamedTuple):
    """The rows of a page's head, and its lines. Other pages, such as a cover, have neither."""

    head: list[str]
    lines: list[Line]


class _Columns(NamedTuple):
    """The left edges of the columns, and the width of one."""

    lefts: list[float]
    width: float


def in_reading_order(pages: Iterable[Page]) -> Iterator[PageText]:
    columns = _Columns([], 0.0)
    for number, page in enumerate(pages, start=1):
        rows = _rows(_without_watermark(page.words))
        columns = _columns(rows, columns, _APART * page.width)
        if not any(_is_body(row) for row in rows):
            yield PageText([], [])
            continue
        top = _top(rows)
        body = [word for row in rows[top:] if not is_about_software(text_of(row)) for word in row]
        lines = list(_lines(number, body, columns.lefts))
        yield PageText([text_of(_without_second_head(row)) for row in rows[:top]], lines)


def _without_watermark(words: Sequence[Word]) -> list[Word]:
    usual = median(word.size for word in words) if words else 0.0
    return [word for word in words if word.size <= _LARGE * usual]


def _rows(words: Iterable[Word]) -> list[Row]:
    rows: list[Row] = []
    for word in sorted(words, key=lambda word: word.y):
        if rows and word.y - rows[-1][0].y <= _SAME_ROW * min(word.size, rows[-1][0].size):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [_from_left(row) for row in rows]


def _from_left(row: Row) -> Row:
    """Sorts a row, and keeps each span together even if it overlaps the next one."""
    starts = _starts(row)
    return sorted(row, key=lambda word: (starts[word.span], word.span, word.x0))


def _starts(words: Iterable[Word]) -> dict[int, float]:
    """The left edge of each span."""
    starts: dict[int, float] = {}
    for word in words:
        starts[word.span] = min(word.x0, starts.get(word.span, word.x0))
    return starts


def _columns(rows: Sequence[Row], last: _Columns, apart: float) -> _Columns:
    """A column without a heading has the position of the previous page, if there is room."""
    headers = [header for row in rows for header in find_table_headers(row)]
    lefts: list[float] = []
    begins = [_left(header, rows, apart) for header in headers]
    for x in sorted(begins + _headings(rows, headers, apart)):
        if not lefts or x - lefts[-1] > apart:
            lefts.append(x)
    if not lefts:
        return last
    width = max((header.x1 - header.x0 for header in headers), default=last.width)
    room = max(width, apart)
    lefts += [x for x in last.lefts if all(abs(x - left) > room for left in lefts)]
    return _Columns(sorted(lefts), width)


def _left(header: TableHeader, rows: Sequence[Row], apart: float) -> float:
    """Includes ranks, which have no label and are left of the names."""
    if header.get("lane"):
        return header.x0
    ranks = [
        word.x0
        for row in rows
        for word, name in pairwise(row)
        if _RANK.fullmatch(word.text)
        and abs(name.x0 - header.x0) < _OUTDENT
        and header.x0 - apart < word.x0 < header.x0
    ]
    return min(ranks, default=header.x0)


def _headings(rows: Sequence[Row], headers: Sequence[TableHeader], apart: float) -> list[float]:
    """The left edges of headings, except those in the middle of a column."""
    places = [word.x0 for row in rows for at, word in enumerate(row) if _is_heading(row, at)]
    return [x for x in places if not any(header.x0 + apart < x < header.x1 for header in headers)]


def _is_heading(row: Row, at: int) -> bool:
    """`Heat 3 …`, `Event 12 …`, `#12 …` or `(#12 …`, not in the middle of a sentence."""
    word, text = row[at], row[at].text.removeprefix("(")
    # After a heat, the event in brackets belongs to it.
    if text != word.text and any(_HEAT.fullmatch(other.text) for other in row[:at]):
        return False
    if at and (word.span == row[at - 1].span or word.x0 - row[at - 1].x1 < word.size / 2):
        return False
    if text.startswith("#"):
        return bool(_NUMBER.fullmatch(text[1:]))
    follows = row[at + 1].text if at + 1 < len(row) else ""
    return bool(_BEGINNING.fullmatch(text) and _NUMBER.fullmatch(follows))


def _top(rows: Sequence[Row]) -> int:
    """The number of rows of the head.

    The head ends after the title and the session. Without a title, it ends before the first
    heading or lane.
    """
    first = next(number for number, row in enumerate(rows) if _is_body(row))
    texts = [text_of(_without_second_head(row)) for row in rows[:first]]
    titles = [number for number, text in enumerate(texts) if is_title(text)]
    if not titles:
        return first
    title, below = titles[-1], titles[-1] + 1
    return below + (below < first and is_session(texts[below], texts[title]))


def _without_second_head(row: Row) -> Row:
    """Removes the second head, if two pages are printed side by side."""
    half = len(row) // 2
    is_twice = text_of(row[:half]) == text_of(row[half:]) and row[half].span != row[half - 1].span
    return row[:half] if is_twice else row


def _is_body(row: Row) -> bool:
    is_lane = row[0].text.isdecimal() and any(SEED.fullmatch(word.text) for word in row)
    is_heading = any(_is_heading(row, at) for at in range(len(row)))
    return is_lane or is_heading or bool(find_table_headers(row))


def _lines(number: int, words: Sequence[Word], lefts: Sequence[float]) -> Iterator[Line]:
    """A span belongs to the column in which it begins, whatever its length."""
    starts = _starts(words)
    for column, left in enumerate(lefts):
        own = [word for word in words if _column_of(starts[word.span], lefts) == column]
        for row in _rows(own):
            moved = [word._replace(x0=word.x0 - left, x1=word.x1 - left) for word in row]
            headers = find_table_headers(moved)
            yield Line(number, moved, headers[0] if headers else None)


def _column_of(x: float, lefts: Sequence[float]) -> int:
    return max(sum(x >= left - _OUTDENT for left in lefts) - 1, 0)
