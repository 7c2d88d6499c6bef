"""Every error of the reader. A retry would fail again, so each is Permanent.

    HeatSyncError
    ├── InvalidPdf            INVALID_PDF: not a PDF, cut off, damaged, or it needs a password
    │   └── ScannedPdf        the same code: images of pages, without text
    ├── PdfTooLarge           PDF_TOO_LARGE
    ├── ExtractionFailed      EXTRACTION_FAILED: has text, but is not a heat sheet
    └── SwimmerNotFound       SWIMMER_NOT_FOUND, with `suggestions`
        └── AmbiguousSwimmer  AMBIGUOUS_SWIMMER, with `candidates`

The code is for programs. The message is shown to end users unchanged.
"""

from collections.abc import Sequence

from batchmill import Permanent


class HeatSyncError(Permanent):
    code = "HEATSYNC"

    def __init__(self, message: str):
        super().__init__(message, code=self.code)


class InvalidPdf(HeatSyncError):
    code = "INVALID_PDF"


class ScannedPdf(InvalidPdf):
    def __init__(self) -> None:
        super().__init__(
            "This PDF is a scan without text. Ask the organisers for the PDF that the meet "
            "software created."
        )


class PdfTooLarge(HeatSyncError):
    code = "PDF_TOO_LARGE"


class ExtractionFailed(HeatSyncError):
    code = "EXTRACTION_FAILED"


class SwimmerNotFound(HeatSyncError):
    code = "SWIMMER_NOT_FOUND"

    def __init__(self, message: str, *, suggestions: Sequence[str] = ()):
        self.suggestions = list(suggestions)
        super().__init__(message)


class AmbiguousSwimmer(SwimmerNotFound):
    code = "AMBIGUOUS_SWIMMER"

    def __init__(self, message: str, *, candidates: Sequence[str]):
        self.candidates = list(candidates)
        super().__init__(message, suggestions=candidates)
