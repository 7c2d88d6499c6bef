"""Reads a heat sheet: PDF → swims."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from apps.heatsync.reader.checks import few, warnings_of
from apps.heatsync.reader.dates import Calendar, read_calendar
from apps.heatsync.reader.errors import ExtractionFailed, ScannedPdf
from apps.heatsync.reader.headings import heat_heading, is_like_heat
from apps.heatsync.reader.page import Line, PageText, in_reading_order
from apps.heatsync.reader.page_head import PageHead, read_page_head
from apps.heatsync.reader.pdf import Page, read_pages
from apps.heatsync.reader.program import Program, ProgramReader
from apps.heatsync.reader.sessions import Sessions
from apps.heatsync.reader.sheet import Sheet
from apps.heatsync.reader.swims import swims_of

# Per page. A scan may contain a few words of text, such as a stamp.
_FEWEST_WORDS = 10


def read_sheet(pdf: bytes | Path) -> Sheet:
    """Raises InvalidPdf, PdfTooLarge or ExtractionFailed."""
    pages = read_pages(pdf)
    texts = list(in_reading_order(pages))
    heads = [read_page_head(text.head) for text in texts]
    program = _program(texts, heads)
    _require_heat_sheet(program, pages, heads)
    calendar = _calendar(texts, heads)
    sessions = Sessions(calendar, [place.session for place in program.places])
    return Sheet(
        meet_name=_first(head.meet for head in heads),
        date_range=(calendar.first, calendar.last) if calendar else None,
        session_title=sessions.title,
        venue=_first(head.venue for head in heads),
        warnings=[*sessions.warnings(), *_left_out(pages, texts), *warnings_of(program)],
        swims=list(swims_of(program, sessions)),
    )


def read_text(pdf: bytes | Path) -> str:
    """The text of a sheet in reading order."""
    texts = in_reading_order(read_pages(pdf))
    return "\n".join(
        row for text in texts for row in (*text.head, *(line.text for line in text.lines))
    )


def _program(texts: Sequence[PageText], heads: Sequence[PageHead]) -> Program:
    has_heats = any(_has_heats(line) for text in texts for line in text.lines)
    reader = ProgramReader(is_psych_sheet=not has_heats)
    session = None
    for text, head in zip(texts, heads, strict=True):
        session = head.session or session
        reader.read(text.lines, session)
    return reader.program


def _has_heats(line: Line) -> bool:
    """A psych sheet has neither lanes nor headings that look like heats."""
    has_lanes = line.header is not None and line.header.get("lane") is not None
    return has_lanes or is_like_heat(line.text) or heat_heading(line.text) is not None


def _require_heat_sheet(program: Program, pages: Sequence[Page], heads: Sequence[PageHead]) -> None:
    if not program.heats and any(head.is_results for head in heads):
        raise ExtractionFailed(
            "This PDF has results. Choose the heat sheet that was published before the meet."
        )
    if program.places:
        return
    if sum(len(page.words) for page in pages) < _FEWEST_WORDS * len(pages):
        raise ScannedPdf
    raise ExtractionFailed(
        "No heats and lanes were found in this PDF. Choose a heat sheet (meet program) that "
        "was created by HY-TEK's MEET MANAGER."
    )


def _left_out(pages: Sequence[Page], texts: Sequence[PageText]) -> list[str]:
    return few(
        f"Page {number} does not look like part of a heat sheet and was left out."
        for number, (page, text) in enumerate(zip(pages, texts, strict=True), start=1)
        if page.words and not text.lines
    )


def _calendar(texts: Sequence[PageText], heads: Sequence[PageHead]) -> Calendar | None:
    dated = next((head for head in heads if head.first_day and head.last_day), None)
    if dated is None or dated.first_day is None or dated.last_day is None:
        return None
    titles = {head.session for head in heads if head.session}
    rows = [row for text in texts for row in (*text.head, *(line.text for line in text.lines))]
    return read_calendar(dated.first_day, dated.last_day, titles, "\n".join(rows))


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value), None)
