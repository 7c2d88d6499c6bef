"""Converts the first audio track to OGG Opus with ffmpeg, and measures it in the same run."""

from pathlib import Path

from apps.calls.audio.errors import EmptyFile, TooLong, Undecodable
from apps.calls.audio.peaks import FORMAT, RATE, Meter
from apps.calls.audio.probe import Probe
from apps.calls.audio.progress import Progress, Report
from apps.calls.audio.source import opened
from apps.calls.audio.tools import Complaint, Pipes

# One thread each, because every thread needs memory for its stack. libopus has one anyway.
_QUIET = ["-nostdin", "-v", "error", "-threads", "1", "-filter_complex_threads", "1"]
# Ordinary stereo, because not every player supports uncoupled channels (-mapping_family 255). Opus
# keeps the speakers apart: on the other channel a voice is at least 40 dB quieter, mostly 60 dB.
OPUS = ["-c:a", "libopus", "-b:a", "32k", "-application", "voip"]
# Without tags, versions and a random serial number, the same sound gives the same bytes.
BITEXACT = [
    *("-map_metadata", "-1", "-map_chapters", "-1"),
    *("-fflags", "+bitexact", "-flags:a", "+bitexact"),
]
# Fills gaps between packets with silence. Otherwise times in the transcript would be too early.
_WITHOUT_GAPS = "aresample=async=1:first_pts=0"


def convert(
    source: Path, target: Path, found: Probe, report: Report, *, longest: float, seconds: float
) -> Meter:
    """Returns the meter after the last sample. Stops after `longest` seconds of sound."""
    meter = Meter(min(found.channels, 2))

    def measure(samples: bytes) -> None:
        meter.feed(samples)
        if meter.seconds > longest:
            raise TooLong(longest)

    with target.open("wb") as file, Pipes() as pipes:
        outputs = [
            *("-progress", pipes.to(Progress(found.expected, report).feed)),
            *("-map", "[sound]", *OPUS, *BITEXACT, "-f", "ogg", pipes.to(file.write)),
            *("-map", "[measured]", "-f", FORMAT, pipes.to(measure)),
        ]
        # An own filter for the rate: the option -ar would change that of the sound too.
        graph = f"[0:a:0]{_filters(found)},asplit[sound][copy];[copy]aresample={RATE}[measured]"
        command = [*_QUIET, *opened(source), "-filter_complex", graph, *outputs]
        try:
            pipes.run("ffmpeg", command, seconds=seconds)
        except Complaint as complaint:
            raise Undecodable from complaint
    meter.finish()
    if not meter.seconds:
        raise EmptyFile
    return meter


def _filters(found: Probe) -> str:
    if found.channels <= 2:
        return _WITHOUT_GAPS
    if found.layout and found.layout != "unknown":
        return f"{_WITHOUT_GAPS},aformat=channel_layouts=stereo"
    # ffmpeg would guess a layout, and drop a channel that it takes for the bass.
    left, right = ("+".join(f"c{at}" for at in range(side, found.channels, 2)) for side in (0, 1))
    return f"pan=stereo|c0<{left}|c1<{right},{_WITHOUT_GAPS}"
