"""How many pages there are: not too many, and not one more for a few lines."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from apps.resumes.options import POINTS_PER_INCH, ExportOptions
from apps.resumes.rendering.errors import TooManyPages

MAX_PAGES = 50
# In points. The lines of all designs are higher.
LOWEST_LINE = 9
# Saving a page matters for short documents. For long ones another layout would take too long.
MOST_PAGES_TO_FIT = 4
SMALLER = (0.96, 0.92)
# The part of each page that this saves.
SAVED = 0.1


class Pages(Protocol):
    @property
    def pages(self) -> Sequence[object]: ...


P = TypeVar("P", bound=Pages)


def require_fitting(lines: int, options: ExportOptions) -> None:
    """Refuses a document that cannot fit before the layout, which may take a minute."""
    columns = 2 if options.template == "columns" else 1
    if lines > MAX_PAGES * columns * text_height(options) * POINTS_PER_INCH / LOWEST_LINE:
        raise TooManyPages(MAX_PAGES)


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
