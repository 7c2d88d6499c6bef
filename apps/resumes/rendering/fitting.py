"""How much there is to lay out: not too many parts and pages, and not one page more for a few
lines."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from apps.resumes.options import POINTS_PER_INCH, ExportOptions
from apps.resumes.rendering.errors import TooManyPages, TooManyParts
from apps.resumes.rendering.view import SIDE, Section, View, section_lines

MAX_PAGES = 50
# Elements of HTML. The layout takes up to 40 kB for each of them.
MAX_PARTS = 4_000
# In points. The lines of all designs are higher.
LOWEST_LINE = 11
# Saving a page matters for short documents. For long ones another layout would take too long.
MOST_PAGES_TO_FIT = 4
SMALLER = (0.96, 0.92)
# The part of each page that this saves.
SAVED = 0.1


class Pages(Protocol):
    @property
    def pages(self) -> Sequence[object]: ...


P = TypeVar("P", bound=Pages)


def require_fitting(view: View, options: ExportOptions) -> None:
    """Refuses a document that cannot fit before the layout, which may take a minute."""
    narrow = SIDE if options.template == "columns" else ()
    most = MAX_PAGES * text_height(options) * POINTS_PER_INCH / LOWEST_LINE
    for is_narrow in (False, True):
        column = (it for it in view.sections.values() if (it.slug in narrow) == is_narrow)
        if count_lines(column) > most:
            raise TooManyPages(MAX_PAGES)


def count_lines(sections: Iterable[Section]) -> int:
    return sum(1 for section in sections for _ in section_lines(section))


def require_few_parts(html: str) -> None:
    """Refuses a document whose layout would take too much memory. The text of `html` is escaped."""
    if html.count("<") - html.count("</") > MAX_PARTS:
        raise TooManyParts(MAX_PARTS)


def fitted(
    lay_out: Callable[[float], P], last_line: Callable[[P], float], options: ExportOptions
) -> P:
    """The layout. If few lines stand on the last page, slightly smaller text may save the page.
    `last_line` says where the text ends on the last page, in inches from its top."""
    document = lay_out(1)
    count = len(document.pages)
    if count > MAX_PAGES:
        raise TooManyPages(MAX_PAGES)
    few_lines = options.margins.top + (count - 1) * SAVED * text_height(options)
    if not 1 < count <= MOST_PAGES_TO_FIT or last_line(document) > few_lines:
        return document
    attempts = map(lay_out, SMALLER)
    return next((each for each in attempts if len(each.pages) < count), document)


def text_height(options: ExportOptions) -> float:
    """Of a page, in inches."""
    paper = options.page_size.points.height / POINTS_PER_INCH
    return paper - options.margins.top - options.margins.bottom
