"""PDF → pages of words, with PDFium."""

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from apps.heatsync.reader.errors import InvalidPdf, PdfTooLarge, ScannedPdf
from apps.heatsync.reader.words import Letter, Word, words_of

MOST_PAGES = 500
MOST_CHARACTERS = 5_000_000

# The maximum distance of the header from the start of the file, and of %%EOF from its end.
_SLACK = 1_024

# PDFium is not thread-safe, not even with different documents.
_pdfium = threading.Lock()


_Upright = Callable[[float, float, float, float, float, float], tuple[float, float, float, float]]


class Page(NamedTuple):
    width: float
    words: list[Word]


def read_pages(pdf: bytes | Path) -> list[Page]:
    data = pdf if isinstance(pdf, bytes) else pdf.read_bytes()
    _require_complete(data)
    with _pdfium:
        try:
            with closing(_opened(data)) as document:
                pages = list(_pages(document))
        except pdfium.PdfiumError as error:
            raise InvalidPdf("This PDF is damaged. Download it again.") from error
    if not any(page.words for page in pages):
        raise ScannedPdf
    return pages


def _require_complete(data: bytes) -> None:
    if not data:
        raise InvalidPdf("This file is empty. Download it again.")
    if b"%PDF-" not in data[:_SLACK]:
        raise InvalidPdf("This file is not a PDF. Choose the PDF of the heat sheet.")
    # PDFium would read the pages that exist, and users would not notice that others are missing.
    if b"%%EOF" not in data.rstrip(b"\0\t\n\r ")[-_SLACK:]:
        raise InvalidPdf("This PDF is incomplete. Download it again.")


def _opened(data: bytes) -> pdfium.PdfDocument:
    try:
        return pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise InvalidPdf(
                "This PDF needs a password. Ask the organisers for a PDF without a password."
            ) from error
        raise


def _pages(document: pdfium.PdfDocument) -> Iterator[Page]:
    if len(document) > MOST_PAGES:
        raise PdfTooLarge(
            f"This PDF has {len(document):,} pages; the limit is {MOST_PAGES}. Choose the heat "
            "sheet of one session."
        )
    left = MOST_CHARACTERS
    for number in range(len(document)):
        with closing(document[number]) as page, closing(page.get_textpage()) as text:
            left -= text.count_chars()
            if left < 0:
                raise PdfTooLarge(
                    "This PDF has too much text for a heat sheet. Choose the heat sheet of "
                    "one session."
                )
            letters = _in_drawing_order(list(_letters(text, _upright(page))), page)
            yield Page(page.get_width(), list(words_of(letters)))


def _letters(text: pdfium.PdfTextPage, upright: _Upright) -> Iterator[Letter]:
    page, box, x, y = text.raw, raw.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    is_apart = False
    for index in range(text.count_chars()):
        drawing = raw.FPDFText_GetTextObject(page, index)
        if not drawing:
            is_apart = True
            continue
        raw.FPDFText_GetLooseCharBox(page, index, box)
        raw.FPDFText_GetCharOrigin(page, index, x, y)
        letter = chr(raw.FPDFText_GetUnicode(page, index))
        x0, x1, base, height = upright(box.left, box.bottom, box.right, box.top, x.value, y.value)
        # Some fonts report no height.
        size = max(height, x1 - x0)
        yield Letter(letter, x0, x1, base, size, ctypes.addressof(drawing.contents), is_apart)
        is_apart = False


def _in_drawing_order(letters: list[Letter], page: pdfium.PdfPage) -> list[Letter]:
    """Sorts letters into drawing order.

    PDFium returns them from left to right, which mixes fields that overlap. The drawing order of
    objects within a form is unknown; then the letters stay as they are.
    """
    count = raw.FPDFPage_CountObjects(page.raw)
    drawings = (raw.FPDFPage_GetObject(page.raw, index) for index in range(count))
    order = {ctypes.addressof(drawing.contents): at for at, drawing in enumerate(drawings)}
    if any(letter.drawing not in order for letter in letters):
        return letters
    return sorted(letters, key=lambda letter: order[letter.drawing])


def _upright(page: pdfium.PdfPage) -> _Upright:
    """Returns a function that applies the rotation of the page to a letter.

    The function takes the box and the origin of a letter, from the bottom left of the unrotated
    page. It returns left, right, baseline and height on the rotated page.
    """
    width, height = page.get_size()
    turned: dict[int, _Upright] = {
        0: lambda left, bottom, right, top, _, y: (left, right, height - y, top - bottom),
        90: lambda left, bottom, right, top, x, _: (bottom, top, x, right - left),
        180: lambda left, bottom, right, top, _, y: (width - right, width - left, y, top - bottom),
        270: lambda left, bottom, right, top, x, _: (
            width - top,
            width - bottom,
            height - x,
            right - left,
        ),
    }
    return turned[page.get_rotation()]
