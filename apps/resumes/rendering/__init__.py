"""A resume as PDF, and pages of a PDF as pictures.

    Resume ──► View ──► HTML ──► pages ──► PDF ──► grey, if asked for
               view     html     engine    engine   grey
               photo

Nothing is fetched: the only address that the layout can open is the picture, which was decoded
before. WeasyPrint and its libraries are loaded by the first `render`, so a process that only
submits jobs does not need them.
"""

from apps.resumes.rendering.errors import (
    NoSuchPage,
    RendererMissing,
    RenderingError,
    TooManyPages,
    TooManyParts,
    TooMuchMemory,
)
from apps.resumes.rendering.fitting import MAX_PAGES
from apps.resumes.rendering.fonts import check_fonts
from apps.resumes.rendering.picture import picture_of
from apps.resumes.rendering.pipeline import Rendered, render

__all__ = [
    "MAX_PAGES",
    "NoSuchPage",
    "Rendered",
    "RendererMissing",
    "RenderingError",
    "TooManyPages",
    "TooManyParts",
    "TooMuchMemory",
    "check_fonts",
    "picture_of",
    "render",
]
