"""HTML → PDF with WeasyPrint. It is imported by the first report that a process prints."""

import logging
from functools import cache
from io import BytesIO
from typing import Any

from weasyprint import CSS, HTML
from weasyprint.text.fonts import FontConfiguration
from weasyprint.urls import URLFetcher, URLFetcherResponse

from apps.sites.report.printed import TEMPLATES

# Accessible: with the structure of the document and its language.
VARIANT = "pdf/ua-1"

# Their messages quote the report.
for name in ("weasyprint", "weasyprint.progress", "fontTools"):
    logging.getLogger(name).disabled = True


class Nothing(URLFetcher):
    """A report contains everything that it shows, so no address in it is opened."""

    def __init__(self) -> None:
        super().__init__(allowed_protocols=(), allow_redirects=False)

    def fetch(self, url: str, headers: Any = None) -> URLFetcherResponse:
        raise ValueError("Nothing is fetched.")


def pdf_from(html: str) -> bytes:
    file = BytesIO()
    HTML(string=html, url_fetcher=Nothing()).write_pdf(
        file, font_config=fonts(), stylesheets=[style()], pdf_variant=VARIANT
    )
    return file.getvalue()


@cache
def style() -> CSS:
    text = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    return CSS(string=text, font_config=fonts(), url_fetcher=Nothing())


@cache
def fonts() -> FontConfiguration:
    """Reading the installed fonts takes longer than laying out a page."""
    return FontConfiguration()
