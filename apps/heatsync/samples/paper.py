"""Pages with columns, which are filled from the top, one after the other."""

import io
from collections.abc import Mapping, Sequence

from reportlab.pdfgen.canvas import Canvas

_WIDTH, _HEIGHT = 612.0, 792.0
_MARGIN, _GAP = 18.0, 18.0
_TOP, _BOTTOM = 712.0, 30.0
_LEADING = 1.35
_SIZES = {1: 10.0, 2: 8.0, 3: 6.8}
_PLAIN, _BOLD = "Times-Roman", "Times-Bold"

# The position as a fraction of the column's width, and whether the field ends there. A long name
# overlaps the next field.
_PLACES = {
    "lane": (0.07, True),
    "name": (0.09, False),
    "age": (0.52, True),
    "team": (0.54, False),
    "relay": (0.62, False),
    "seed": (0.86, True),
    "standard": (0.88, False),
    "first leg": (0.05, False),
    "second leg": (0.55, False),
}


class Paper:
    """`head` is printed above all columns of a page, `labels` at the top of each."""

    def __init__(self, head: Sequence[str], columns: int, labels: Mapping[str, str] | None):
        self._head = head
        self._columns = columns
        self._labels = labels
        self._file = io.BytesIO()
        # The file contains no timestamp, so that the same sheet gives the same bytes.
        self._canvas = Canvas(self._file, pagesize=(_WIDTH, _HEIGHT), invariant=1)
        self._size = _SIZES[columns]
        self._step = (_WIDTH - 2 * _MARGIN + _GAP) / columns
        self._page, self._column, self._y = 0, columns, 0.0
        self.reserve(1)

    def reserve(self, rows: int) -> bool:
        """Starts the next column if this number of rows does not fit. Returns whether it did."""
        if self._y - rows * self._size * _LEADING >= _BOTTOM:
            return False
        self._column, self._y = self._column + 1, _TOP
        if self._column >= self._columns:
            self._begin_page()
        if self._labels:
            self.row(self._labels, bold=True)
        return True

    def line(self, text: str, *, bold: bool = False) -> None:
        """Prints a line, cut off at the width of the column."""
        self._begin_row(font := _BOLD if bold else _PLAIN)
        while self._canvas.stringWidth(text, font, self._size) > self._step - _GAP / 2:
            text = text[:-1]
        self._canvas.drawString(self._left, self._y, text)

    def row(self, fields: Mapping[str, str], *, bold: bool = False) -> None:
        self._begin_row(_BOLD if bold else _PLAIN)
        for place, text in fields.items():
            part, ends = _PLACES[place]
            x = self._left + part * (self._step - _GAP)
            draw = self._canvas.drawRightString if ends else self._canvas.drawString
            draw(x, self._y, text)

    def finish(self) -> bytes:
        self._canvas.save()
        return self._file.getvalue()

    @property
    def _left(self) -> float:
        return _MARGIN + self._column * self._step

    def _begin_row(self, font: str) -> None:
        self._y -= self._size * _LEADING
        self._canvas.setFont(font, self._size)

    def _begin_page(self) -> None:
        if self._page:
            self._canvas.showPage()
        self._page, self._column = self._page + 1, 0
        software = f"HY-TEK's MEET MANAGER 8.0 - 9:12 PM  6/24/2025  Page {self._page}"
        self._canvas.setFont(_PLAIN, 8)
        self._canvas.drawString(_MARGIN, 760, "Licensed to nobody")
        self._canvas.drawRightString(_WIDTH - _MARGIN, 760, software)
        self._canvas.setFont(_BOLD, 9)
        for row, text in enumerate(self._head):
            self._canvas.drawCentredString(_WIDTH / 2, 748 - 11 * row, text)
