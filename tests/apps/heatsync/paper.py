"""Draws sheets from plain text, in a monospaced font.

Fields are drawn one by one, like in MEET MANAGER, or a line at once, like by a PDF printer.
"""

import io
import re
from textwrap import dedent

from reportlab.pdfgen.canvas import Canvas

from apps.heatsync.reader import Sheet, Swim, read_sheet

SIZE = 8.0
LETTER = 0.6 * SIZE
GAP = 20.0
TITLE = "Harbor Open - 6/27/2025 to 6/29/2025\nMeet Program - Session 3 Saturday PM"
LANES = "Lane  Name                   Age  Team            Seed Time"
TEAMS = "Lane  Team                        Relay           Seed Time"


def read(*columns: str, title: str = TITLE, by_line: bool = False) -> Sheet:
    return read_sheet(paper([columns], title=title, by_line=by_line))


def swims(*rows: str, by_line: bool = False) -> list[Swim]:
    """Reads the rows of one heat below LANES, without warnings."""
    title = "Event 1  Girls 11-12 50 Yard Freestyle"
    body = "\n".join([title, LANES, "Heat 1 of 1  Finals", *rows])
    sheet = read(body, by_line=by_line)
    assert sheet.warnings == []
    return sheet.swims


def not_understood(sheet: Sheet) -> list[str]:
    matches = (re.search(r'not understood: "(.*)"', warning) for warning in sheet.warnings)
    return [match[1] for match in matches if match]


def paper(
    pages: list[tuple[str, ...]], *, title: str = TITLE, by_line: bool = False, rotation: int = 0
) -> bytes:
    """Draws pages of columns. The content of rotated pages is drawn rotated, so they look the same."""
    widest = max(len(line) for columns in pages for text in columns for line in text.split("\n"))
    step = widest * LETTER + GAP
    width, height = GAP + step * max(map(len, pages)), 800.0
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(width, height) if rotation in (0, 180) else (height, width))
    for columns in pages:
        canvas.setPageRotation(rotation)
        _rotate(canvas, rotation, width, height)
        canvas.setFont("Courier", SIZE)
        for row, text in enumerate(title.split("\n")):
            canvas.drawCentredString(width / 2, height - 30 - 10 * row, text)
        for column, text in enumerate(columns):
            for row, line in enumerate(dedent(text).strip("\n").split("\n")):
                for at, piece in _pieces(line, by_line):
                    x = GAP + column * step + at * LETTER
                    canvas.drawString(x, height - 70 - 10 * row, piece)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def _pieces(line: str, by_line: bool) -> list[tuple[int, str]]:
    if by_line:
        return [(0, line)]
    return [(piece.start(), piece[0]) for piece in re.finditer(r"\S+(?: \S+)*", line)]


def _rotate(canvas: Canvas, rotation: int, width: float, height: float) -> None:
    canvas.translate(*{0: (0, 0), 90: (height, 0), 180: (width, height), 270: (0, width)}[rotation])
    canvas.rotate(rotation)
