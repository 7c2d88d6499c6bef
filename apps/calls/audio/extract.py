"""A recording as it was uploaded → OGG Opus, its length, and peaks for drawing it."""

from dataclasses import dataclass
from pathlib import Path

from apps.calls.audio.complete import require_complete
from apps.calls.audio.convert import convert
from apps.calls.audio.errors import EmptyFile, SilentChannel, TooLong, Truncated
from apps.calls.audio.peaks import Meter
from apps.calls.audio.probe import Probe, probe
from apps.calls.audio.progress import Report

LONGEST = 4 * 3_600
# A free core converts four hours in 3 minutes. A busy machine needs several times that.
TIME_LIMIT = 1500.0

# How much less than its header states a recording may have. Headers count silence that encoders
# add and players skip, they are rounded, and a damaged frame is left out.
_SLACK_SECONDS = 0.5
_SLACK_SHARE = 0.005


@dataclass(frozen=True)
class Extracted:
    """`duration` is in seconds. `peaks` has a list for each channel, see `Meter.peaks`."""

    duration: float
    channels: int
    peaks: list[list[int]]


def extract(
    source: Path,
    target: Path,
    report: Report,
    *,
    longest: float = LONGEST,
    seconds: float = TIME_LIMIT,
) -> Extracted:
    """Converts `source` to `target`, and reports percentages up to 100.

    Raises a RecordingError if the recording is longer than `longest` seconds or cannot be used,
    and ToolFailed if the conversion takes more than `seconds`. Then `target` does not exist.
    """
    if not source.stat().st_size:
        raise EmptyFile
    require_complete(source)
    found = probe(source)
    if found.declared is not None and found.declared > longest:
        raise TooLong(longest, found.declared)
    try:
        meter = convert(source, target, found, report, longest=longest, seconds=seconds)
        _require_whole(meter, found)
        _require_signal(meter)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    report(100.0)
    return Extracted(duration=meter.seconds, channels=meter.channels, peaks=meter.peaks())


def _require_whole(meter: Meter, found: Probe) -> None:
    """ffmpeg succeeds with whatever is there, so lengths are compared."""
    if found.declared is None:
        return
    missing = found.declared - meter.seconds
    if missing > _SLACK_SECONDS + _SLACK_SHARE * found.declared:
        raise Truncated(meter.seconds, found.declared)


def _require_signal(meter: Meter) -> None:
    channel = meter.silent_channel()
    if channel is not None:
        raise SilentChannel(channel, meter.channels)
