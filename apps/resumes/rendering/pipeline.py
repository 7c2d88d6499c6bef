"""One resume, from its data to the bytes of the PDF."""

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from apps.resumes.document import Resume
from apps.resumes.options import ColorMode, ExportOptions
from apps.resumes.rendering.errors import RendererMissing
from apps.resumes.rendering.fitting import fitted, require_few_parts, require_fitting
from apps.resumes.rendering.glyphs import warning_of
from apps.resumes.rendering.html import html_of, page_style
from apps.resumes.rendering.metadata import properties_of
from apps.resumes.rendering.photo import photo_of
from apps.resumes.rendering.prose import Prose
from apps.resumes.rendering.scripts import (
    PAGE_LANGUAGE,
    direction_of,
    han_of,
    has_large_fonts,
    language_of,
)
from apps.resumes.rendering.view import lines_of, view_of

if TYPE_CHECKING:
    from weasyprint import Document

PHOTO_MILLIMETRES = 27
# The headings are English. A page is in another language if most of its letters are.
MOST = 2 / 3


class Rendered(NamedTuple):
    """Warnings are sentences for the user. They contain nothing of the document."""

    pdf: bytes
    page_count: int
    warnings: tuple[str, ...]


def render(resume: Resume, options: ExportOptions, report: Callable[[str], None]) -> Rendered:
    """Calls `report` with the name of each step when it begins: fetch, render, generate."""
    report("fetch")
    view = view_of(resume)
    lines = list(lines_of(view))
    require_fitting(view, options)
    grey = options.color_mode is ColorMode.GRAYSCALE
    photo = photo_of(resume, millimetres=PHOTO_MILLIMETRES, quality=options.quality, grey=grey)

    report("render")
    engine = load_engine()
    text, han = "\n".join(lines), han_of(lines)
    direction = direction_of(text)
    prose = Prose(direction)
    html = html_of(
        view,
        options,
        prose,
        language=language_of(text, share=MOST) or PAGE_LANGUAGE,
        direction=direction,
        photo=engine.PHOTO if photo.data else "",
    )
    require_few_parts(html)

    def lay_out(scale: float) -> "Document":
        style = page_style(options, han=han, scale=scale)
        return engine.lay_out(html, options.template, style, photo.data)

    document = fitted(lay_out, engine.last_line, options)

    report("generate")
    pdf = engine.write(document, properties_of(view, options.metadata), grey=grey)
    warnings = photo.warning, prose.warning, warning_of(engine.missing_letters(document))
    rendered = Rendered(pdf, len(document.pages), tuple(filter(None, warnings)))
    if has_large_fonts(text):
        # A process that has seen all scripts would keep 280 MB of fonts.
        del document
        engine.forget_fonts()
    return rendered


def load_engine() -> ModuleType:
    """Takes half a second in a new process."""
    try:
        # WeasyPrint prints advice that is for its own users.
        with redirect_stdout(StringIO()):
            from apps.resumes.rendering import engine
    except OSError as error:
        raise RendererMissing from error
    return engine
