"""Transcripts for tests, in few words."""

from apps.calls.analysis.sentences import Sentence
from apps.calls.models import Segment, Speech, Transcript


def segment(text: str, start: float = 0.0, end: float = 1.0, speaker: int = 1) -> Segment:
    return Segment(speaker=speaker, start=start, end=end, text=text)


def speech(speaker: int, start: float, end: float) -> Speech:
    return Speech(speaker=speaker, start=start, end=end)


def transcript(
    *segments: Segment,
    duration: float = 60.0,
    speakers: int = 2,
    language: str = "en",
    speech: list[Speech] | None = None,
) -> Transcript:
    return Transcript(
        provider="local",
        language=language,
        duration=duration,
        speakers=speakers,
        segments=list(segments),
        speech=speech or [],
    )


def sentence(text: str, start: float = 0.0, end: float = 1.0, speaker: int = 1) -> Sentence:
    return Sentence(speaker, start, end, tuple(text.split()))
