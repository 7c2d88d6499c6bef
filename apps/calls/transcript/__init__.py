"""Transcripts as files: written as txt, srt and vtt, and read from the file that a user gives."""

from apps.calls.transcript.errors import InvalidTranscript
from apps.calls.transcript.formats import Format, as_srt, as_txt, as_vtt, formatted
from apps.calls.transcript.read import check_size, has_estimated_times, read_transcript

__all__ = [
    "Format",
    "InvalidTranscript",
    "as_srt",
    "as_txt",
    "as_vtt",
    "check_size",
    "formatted",
    "has_estimated_times",
    "read_transcript",
]
