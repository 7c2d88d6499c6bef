"""Reads a transcript that a user gives, for the provider `manual`."""

import re
from collections.abc import Iterable
from itertools import islice

from apps.calls.models import Segment, Transcript
from apps.calls.transcript.document import read_json
from apps.calls.transcript.errors import InvalidTranscript
from apps.calls.transcript.plain import read_plain
from apps.calls.transcript.speakers import Piece, numbered
from apps.calls.transcript.subtitles import is_srt, is_vtt, read_srt, read_vtt
from apps.calls.transcript.times import problem_with, within
from apps.calls.transcript.words import readable

# Of the file. JSON has the times of all words, and is many times larger than its text.
MOST_BYTES = 20_000_000
# A call of ten hours has about 10,000 segments and 500,000 characters.
MOST_SEGMENTS, MOST_TEXT = 50_000, 1_000_000
MANUAL = "manual"
# The provider of a transcript without times of its own: they are estimated from the characters.
ESTIMATED = "manual: estimated times"
_JSON = re.compile(r'\s*\{\s*["}]')
_LINE = re.compile("\r\n|\r|\n")


def read_transcript(given: bytes | str, *, language: str, duration: float) -> Transcript:
    """Reads our own JSON, SRT, VTT or plain text. `duration` is the length of the recording.

    Names of speakers become numbers. Plain text has no times, so they are estimated; then
    `has_estimated_times` is true. Raises InvalidTranscript, which names the line.
    """
    check_size(len(given))
    text = _decoded(given)
    if not text.strip():
        raise InvalidTranscript(1, "the transcript is empty.")
    transcript = _read(text, language, duration)
    if len(transcript.text) > MOST_TEXT:
        raise InvalidTranscript(1, f"the transcript has more than {MOST_TEXT:,} characters.")
    return transcript


def check_size(size: int) -> None:
    """Raises InvalidTranscript if a file of this many bytes is too large. Check it before you load
    the file."""
    if size > MOST_BYTES:
        raise InvalidTranscript(1, f"the file has more than {MOST_BYTES:,} bytes.")


def _read(text: str, language: str, duration: float) -> Transcript:
    if _JSON.match(text):
        return _owned(read_json(text, duration), language, duration)
    lines = _LINE.split(text)
    if is_vtt(lines):
        return _transcript(read_vtt(lines), MANUAL, language, duration)
    if is_srt(lines):
        return _transcript(read_srt(lines), MANUAL, language, duration)
    return _transcript(read_plain(lines, duration), ESTIMATED, language, duration)


def has_estimated_times(transcript: Transcript) -> bool:
    return transcript.provider == ESTIMATED


def _decoded(given: bytes | str) -> str:
    if isinstance(given, str):
        return given.removeprefix("\ufeff")
    encoding = "utf-16" if given[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return given.decode(encoding)
    except UnicodeDecodeError as error:
        line = given.count(b"\n", 0, error.start) + 1
        raise InvalidTranscript(line, "not UTF-8. Save the file as UTF-8 text.") from error


def _owned(transcript: Transcript, language: str, duration: float) -> Transcript:
    """The provider is always `manual`: a user may have changed the file of another provider."""
    if len(transcript.segments) > MOST_SEGMENTS:
        raise _too_many(1)
    segments = sorted(transcript.segments, key=lambda segment: segment.start)
    speakers = {item.speaker for item in (*segments, *transcript.speech)}
    return Transcript(
        provider=ESTIMATED if has_estimated_times(transcript) else MANUAL,
        language=language,
        duration=duration,
        speakers=max(speakers, default=1),
        segments=segments,
        speech=transcript.speech,
    )


def _transcript(
    pieces: Iterable[Piece], provider: str, language: str, duration: float
) -> Transcript:
    taken = list(islice(pieces, MOST_SEGMENTS + 1))
    if len(taken) > MOST_SEGMENTS:
        raise _too_many(taken[-1].line)
    segments = [
        _segment(speaker, piece, duration)
        for speaker, piece in numbered(taken)
        if readable(piece.text)
    ]
    if not segments:
        raise InvalidTranscript(1, "the transcript has no words.")
    segments.sort(key=lambda segment: segment.start)
    return Transcript(
        provider=provider,
        language=language,
        duration=duration,
        speakers=max(segment.speaker for segment in segments),
        segments=segments,
    )


def _too_many(line: int) -> InvalidTranscript:
    return InvalidTranscript(line, f"the transcript has more than {MOST_SEGMENTS:,} segments.")


def _segment(speaker: int, piece: Piece, duration: float) -> Segment:
    if problem := problem_with(piece.start, piece.end, duration):
        raise InvalidTranscript(piece.line, problem)
    start, end = within(piece.start, piece.end, duration)
    return Segment(speaker=speaker, start=start, end=end, text=readable(piece.text))
