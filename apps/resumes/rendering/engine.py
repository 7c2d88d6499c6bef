"""WeasyPrint, prepared once for a process. This module is imported by the first render only."""

import gc
import logging
from functools import cache
from io import BytesIO
from typing import Any

from weasyprint import CSS, HTML, Document
from weasyprint.text.fonts import FontConfiguration
from weasyprint.urls import URLFetcher, URLFetcherResponse

from apps.resumes.options import TemplateSlug
from apps.resumes.rendering.grey import make_grey
from apps.resumes.rendering.html import TEMPLATES
from apps.resumes.rendering.leanfont import use_lean_fonts
from apps.resumes.rendering.metadata import Properties

PHOTO = "photo:"
VARIANT = "pdf/ua-1"
PIXELS_PER_INCH = 96
# The id of the element at the end of every page.html.
END = "end"

# Their messages quote the document: characters without a glyph, malformed links.
for name in ("weasyprint", "weasyprint.progress", "fontTools"):
    logging.getLogger(name).disabled = True

use_lean_fonts()


class OnlyPhoto(URLFetcher):
    """Opens nothing but the picture of this document."""

    def __init__(self, photo: bytes | None):
        super().__init__(allowed_protocols=(), allow_redirects=False)
        self._photo = photo

    def fetch(self, url: str, headers: Any = None) -> URLFetcherResponse:
        if url != PHOTO or self._photo is None:
            raise ValueError("Nothing is fetched.")
        return URLFetcherResponse(PHOTO, self._photo, {"Content-Type": "image/jpeg"})


def lay_out(html: str, design: TemplateSlug, page_style: str, photo: bytes | None) -> Document:
    fetcher = OnlyPhoto(photo)
    styles = [*styles_of(design), CSS(string=page_style, url_fetcher=fetcher)]
    return HTML(string=html, url_fetcher=fetcher).render(
        font_config=font_configuration(), stylesheets=styles, pdf_variant=VARIANT
    )


def last_line(document: Document) -> float:
    """Where the text ends on the last page, in inches from its top."""
    _, y, *_ = document.pages[-1].anchors[END]
    return y / PIXELS_PER_INCH


def write(document: Document, properties: Properties, *, grey: bool) -> bytes:
    # Nothing links to it.
    document.pages[-1].anchors.pop(END, None)
    metadata = document.metadata
    metadata.title = properties.title
    metadata.authors = [properties.author] if properties.author else []
    metadata.description = properties.subject
    metadata.keywords = list(properties.keywords)
    metadata.generator = properties.creator
    finisher = (lambda _, pdf: make_grey(pdf)) if grey else None
    file = BytesIO()
    document.write_pdf(file, pdf_variant=VARIANT, finisher=finisher)
    return file.getvalue()


def missing_letters(document: Document) -> set[str]:
    """The characters that a written document shows as boxes."""
    return {chr(letter) for font in document.fonts.values() for letter in font.missing}


@cache
def styles_of(design: TemplateSlug) -> tuple[CSS, ...]:
    return tuple(
        CSS(string=(TEMPLATES / name).read_text(encoding="utf-8"), font_config=font_configuration())
        for name in ("shared.css", f"{design}/style.css")
    )


@cache
def font_configuration() -> FontConfiguration:
    """Reading the installed fonts takes longer than laying out a page."""
    return FontConfiguration()


def forget_fonts() -> None:
    """Frees the fonts of earlier documents, which otherwise stay in memory."""
    font_configuration.cache_clear()
    gc.collect()
