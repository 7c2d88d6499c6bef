"""A transcript as json, txt, srt and vtt."""

from collections.abc import Iterable
from typing import Literal

from apps.calls.models import Transcript
from apps.calls.transcript.cues import Cue, cues_of
from apps.calls.transcript.markup import for_srt, for_vtt
from apps.calls.transcript.speakers import speaker_name
from apps.calls.transcript.words import readable

Format = Literal["json", "txt", "srt", "vtt"]


def formatted(transcript: Transcript, format: Format) -> str:
    match format:
        case "json":
            return transcript.model_dump_json(by_alias=True)
        case "txt":
            return as_txt(transcript)
        case "srt":
            return as_srt(transcript)
        case "vtt":
            return as_vtt(transcript)


def as_txt(transcript: Transcript) -> str:
    """A line for each segment: `Speaker 1: Hello.`"""
    texts = [(segment.speaker, readable(segment.text)) for segment in transcript.segments]
    return "".join(f"{speaker_name(speaker)}: {text}\n" for speaker, text in texts if text)


def as_srt(transcript: Transcript) -> str:
    """Each cue names its speaker, because viewers may start anywhere."""
    cues = cues_of(_without_markup(transcript), lambda speaker: f"{speaker_name(speaker)}: ")
    return "\n".join(_srt_blocks(cues))


def _srt_blocks(cues: Iterable[Cue]) -> Iterable[str]:
    for number, cue in enumerate(cues, 1):
        text = "\n".join(cue.lines)
        yield f"{number}\n{_time(cue.start, ',')} --> {_time(cue.end, ',')}\n{text}\n"


def as_vtt(transcript: Transcript) -> str:
    """The speaker is the voice of the cue, which players do not show as text."""
    cues = cues_of(transcript, lambda speaker: "")
    return "\n".join(["WEBVTT\n", *_vtt_blocks(cues)])


def _vtt_blocks(cues: Iterable[Cue]) -> Iterable[str]:
    for cue in cues:
        voice, text = f"<v {speaker_name(cue.speaker)}>", for_vtt("\n".join(cue.lines))
        yield f"{_time(cue.start, '.')} --> {_time(cue.end, '.')}\n{voice}{text}\n"


def _without_markup(transcript: Transcript) -> Transcript:
    segments = [
        segment.model_copy(update={"text": for_srt(segment.text)})
        for segment in transcript.segments
    ]
    return transcript.model_copy(update={"segments": segments})


def _time(milliseconds: int, point: str) -> str:
    seconds, rest = divmod(milliseconds, 1_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02}:{minute:02}:{second:02}{point}{rest:03}"
