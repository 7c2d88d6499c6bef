"""Asks ffprobe what a file contains."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.calls.audio import tools
from apps.calls.audio.errors import NoSound, NotAudio, Undecodable
from apps.calls.audio.source import opened

_SECONDS = 60
# Below this, ffmpeg guesses: random bytes are "MP3" with a score of 1.
_LEAST_SCORE = 10
_FIELDS = (
    "format=duration,start_time,nb_streams,probe_score"
    ":stream=codec_name,channels,channel_layout,duration:stream_tags=DURATION"
)
# ffprobe says only in its log that a duration is an estimate.
_ESTIMATE = b"Estimating duration from bitrate"


@dataclass(frozen=True)
class Probe:
    """The first audio track. Lengths are in seconds.

    `declared` is the length that the file claims, and None if it does not. `expected` may also be
    an estimate, which is far off for MP3 with a variable bit rate.
    """

    channels: int
    layout: str | None
    declared: float | None
    expected: float | None


def probe(source: Path) -> Probe:
    arguments = ["-v", "warning", "-of", "json", "-select_streams", "a:0", "-show_entries", _FIELDS]
    try:
        answer, log = tools.output("ffprobe", [*arguments, *opened(source)], seconds=_SECONDS)
    except tools.Complaint as complaint:
        raise NotAudio from complaint
    found = json.loads(answer)
    if int(found["format"]["probe_score"]) < _LEAST_SCORE:
        raise NotAudio
    if not found["streams"]:
        raise NoSound
    return _understood(found["streams"][0], found["format"], is_estimate=_ESTIMATE in log)


def _understood(stream: dict[str, Any], container: dict[str, Any], *, is_estimate: bool) -> Probe:
    if not stream.get("channels"):
        raise Undecodable
    expected = _length(stream, container)
    # Without compression the estimate is exact.
    is_declared = not is_estimate or stream.get("codec_name", "").startswith("pcm_")
    return Probe(
        channels=stream["channels"],
        layout=stream.get("channel_layout"),
        declared=expected if is_declared else None,
        expected=expected,
    )


def _length(stream: dict[str, Any], container: dict[str, Any]) -> float | None:
    """The length of the track. The picture of a video may take longer than its sound, so the
    length of the container counts only if the track is alone in it."""
    end = _seconds(stream.get("duration")) or _clock(stream.get("tags", {}).get("DURATION"))
    if end is None and container["nb_streams"] == 1:
        end = _seconds(container.get("duration"))
    # Matroska counts from zero, also if the first sound is later. ffmpeg skips that time.
    return end and max(0.0, end - (_seconds(container.get("start_time")) or 0.0))


def _seconds(text: str | None) -> float | None:
    return float(text) if text else None


def _clock(text: str | None) -> float | None:
    """`00:01:40.008000000` in seconds. Any program may have written it."""
    try:
        hours, minutes, seconds = map(float, (text or "").split(":"))
    except ValueError:
        return None
    length = 3600 * hours + 60 * minutes + seconds
    return length if math.isfinite(length) else None
