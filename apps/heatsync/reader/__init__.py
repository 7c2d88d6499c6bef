"""Reads heat sheets of HY-TEK's MEET MANAGER, without guessing.

    PDF ──► words ──► columns, lines ──► headings, entries ──► checks ──► sheet ──► swims
    pdf     pdf       page               program               checks     read      match

Only the printed text and its position count. Text that is not understood becomes a warning.
"""

from apps.heatsync.reader.clock import clock
from apps.heatsync.reader.errors import (
    AmbiguousSwimmer,
    ExtractionFailed,
    HeatSyncError,
    InvalidPdf,
    PdfTooLarge,
    ScannedPdf,
    SwimmerNotFound,
)
from apps.heatsync.reader.match import find_swims, is_same_name, normalised
from apps.heatsync.reader.read import read_sheet, read_text
from apps.heatsync.reader.sheet import Model, Sheet, Swim

__all__ = [
    "AmbiguousSwimmer",
    "ExtractionFailed",
    "HeatSyncError",
    "InvalidPdf",
    "Model",
    "PdfTooLarge",
    "ScannedPdf",
    "Sheet",
    "Swim",
    "SwimmerNotFound",
    "clock",
    "find_swims",
    "is_same_name",
    "normalised",
    "read_sheet",
    "read_text",
]
