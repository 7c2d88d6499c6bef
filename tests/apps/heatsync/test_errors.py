"""Files that cannot be read raise an error with a sentence for users."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from apps.heatsync.reader import (
    ExtractionFailed,
    HeatSyncError,
    InvalidPdf,
    PdfTooLarge,
    ScannedPdf,
    read_sheet,
)
from apps.heatsync.samples import Layout, draw, make_meet
from batchmill import Permanent
from tests.apps.heatsync.paper import read
from tests.apps.heatsync.sheets import pdf_of

WHOLE = draw(make_meet(1, events=2), Layout(columns=2))


def drawn(draw: Callable[[Canvas], object], **options: Any) -> bytes:
    canvas = Canvas(file := io.BytesIO(), **options)
    draw(canvas)
    canvas.save()
    return file.getvalue()


def many_pages(count: int) -> bytes:
    """A PDF that contains the same page `count` times."""
    kids = b" ".join([b"3 0 R"] * count)
    return pdf_of(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%b] >>" % (count, kids),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>",
    )


@pytest.mark.parametrize(
    ("pdf", "error", "word"),
    [
        (b"", InvalidPdf, "empty"),
        (b"hello", InvalidPdf, "not a PDF"),
        (b"\x89PNG\r\n\x1a\n" + bytes(5000), InvalidPdf, "not a PDF"),
        (b"%PDF-1.4 and nothing else %%EOF", InvalidPdf, "damaged"),
        (WHOLE[: len(WHOLE) // 2], InvalidPdf, "incomplete"),
        (WHOLE[:-1500], InvalidPdf, "incomplete"),
        (
            drawn(
                lambda canvas: canvas.drawString(9, 9, "secret"), encrypt=StandardEncryption("x")
            ),
            InvalidPdf,
            "password",
        ),
        (drawn(lambda canvas: canvas.rect(9, 9, 99, 99, fill=1)), ScannedPdf, "a scan"),
        (drawn(lambda canvas: canvas.drawString(9, 9, "Scanned by me")), ScannedPdf, "a scan"),
        (many_pages(10_000), PdfTooLarge, "10,000 pages"),
        (
            drawn(
                lambda canvas: canvas.drawString(
                    9, 9, "Dear all, the meet on Saturday is off. " * 9
                )
            ),
            ExtractionFailed,
            "No heats and lanes",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unreadable_file_raises_an_error_with_the_reason(
    pdf: bytes, error: type[HeatSyncError], word: str
):
    with pytest.raises(HeatSyncError) as caught:
        read_sheet(pdf)
    assert type(caught.value) is error
    assert word in str(caught.value) and str(caught.value).endswith(".")
    assert isinstance(caught.value, Permanent)


def test_codes_are_stable():
    codes = {error("…").error_code for error in (InvalidPdf, PdfTooLarge, ExtractionFailed)}
    assert codes == {"INVALID_PDF", "PDF_TOO_LARGE", "EXTRACTION_FAILED"}
    assert ScannedPdf().error_code == "INVALID_PDF"


def test_results_are_not_accepted_as_a_heat_sheet():
    with pytest.raises(ExtractionFailed, match="results"):
        read(
            """\
            Event 1  Girls 50 Yard Free
                  Name                   Age  Team            Seed Time
               1  Doe, Jane               11  ABC             28.11
            """,
            title="Open - 6/27/2025\nResults - Session 1",
        )


def test_a_sheet_can_be_read_from_a_path(tmp_path: Path):
    (tmp_path / "sheet.pdf").write_bytes(WHOLE + b"\0\r\n" * 2000)
    assert read_sheet(tmp_path / "sheet.pdf") == read_sheet(WHOLE)


@settings(max_examples=40)
@given(st.data())
def test_a_damaged_file_is_read_or_raises_a_heatsync_error(data: st.DataObject):
    pdf = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 20))):
        pdf[data.draw(st.integers(0, len(pdf) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_sheet(bytes(pdf))
    except HeatSyncError as error:
        assert str(error).endswith(".")
