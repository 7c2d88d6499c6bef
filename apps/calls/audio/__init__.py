"""Untrusted recordings → OGG Opus with one speaker for each channel.

    file ──► complete? ──► probe ──► OGG Opus, samples ──► peaks, silent channels
             complete      probe     convert               peaks

ffmpeg does the work, in processes that inherit the limits of their job.
"""

from apps.calls.audio.errors import (
    EmptyFile,
    NoSound,
    NotAudio,
    RecordingError,
    SilentChannel,
    ToolFailed,
    ToolMissing,
    TooLong,
    Truncated,
    Undecodable,
)
from apps.calls.audio.extract import LONGEST, TIME_LIMIT, Extracted, extract

__all__ = [
    "LONGEST",
    "TIME_LIMIT",
    "EmptyFile",
    "Extracted",
    "NoSound",
    "NotAudio",
    "RecordingError",
    "SilentChannel",
    "TooLong",
    "ToolFailed",
    "ToolMissing",
    "Truncated",
    "Undecodable",
    "extract",
]
