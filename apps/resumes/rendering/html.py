"""The HTML of a resume in one of the designs, and the style of its pages."""

import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from apps.resumes.options import POINTS_PER_INCH, ExportOptions
from apps.resumes.rendering.prose import Prose, plain
from apps.resumes.rendering.scripts import Direction, Han
from apps.resumes.rendering.view import SIDE, Link, View

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
# In inches. Below this there is no room for the number of a page.
ROOM_FOR_NUMBERS = 0.45
# The widths of an average letter, and of the picture beside the contacts.
LETTER_POINTS = {"minimal": 4.6, "columns": 4.5, "compact": 4.3, "serif": 4.5, "modern": 4.6}
PHOTO_POINTS = 90
SEPARATOR = 3
# As many as fit on one line between the widest margins, with the number of the page.
FOOTER_LETTERS = 48


def html_of(
    view: View,
    options: ExportOptions,
    prose: Prose,
    *,
    language: str,
    direction: Direction,
    photo: str,
) -> str:
    """`photo` is the address of the picture, or empty."""
    room = options.page_size.points.width - POINTS_PER_INCH * (
        options.margins.left + options.margins.right
    )
    letters = (room - PHOTO_POINTS * bool(photo)) / LETTER_POINTS[options.template]
    template = environment().get_template(f"{options.template}/page.html")
    return template.render(
        view=view,
        side=SIDE,
        prose=prose,
        contacts=list(packed(view.contacts, letters)),
        footer_name=shortened(plain(view.title), FOOTER_LETTERS),
        language=language,
        direction=direction,
        photo=photo,
    )


def packed(contacts: Iterable[Link], letters: float) -> Iterator[list[Link]]:
    """As many contacts on each line as have room, so that no line ends with a separator."""
    line, used = list[Link](), 0
    for contact in contacts:
        width = width_of(contact.text) + SEPARATOR
        if line and used + width > letters:
            yield line
            line, used = [], 0
        line.append(contact)
        used += width
    if line:
        yield line


def shortened(text: str, letters: int) -> str:
    """With an ellipsis if it is wider than that many letters."""
    if width_of(text) <= letters:
        return text
    widths = accumulate(map(width_of, text))
    kept = "".join(letter for letter, width in zip(text, widths, strict=True) if width < letters)
    return f"{kept.rstrip()}…"


def width_of(text: str) -> int:
    """In letters. Chinese characters are twice as wide."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def page_style(options: ExportOptions, *, han: Han, scale: float) -> str:
    """The part of the style that depends on the document. `han` selects the font for Chinese
    characters, and `scale` applies to all text."""
    return (
        environment()
        .get_template("page.css")
        .render(
            size=options.page_size.points,
            margins=options.margins,
            han=han,
            scale=scale,
            numbered=options.margins.bottom >= ROOM_FOR_NUMBERS,
        )
    )


@cache
def environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Templates do not change while this process runs.
        auto_reload=False,
    )
