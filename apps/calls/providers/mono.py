"""One channel of a recording as a file of its own."""

from pathlib import Path

from apps.calls.audio.convert import BITEXACT, OPUS
from apps.calls.audio.tools import Complaint, run
from apps.calls.providers.contract import OperationRefused

SECONDS = 900.0


async def channel_file(recording: Path, channel: int, target: Path) -> None:
    """Writes it with ffmpeg. Channels are counted from 1. The recording is one that this
    application has converted, so it needs no limit on memory."""
    source = ("-nostdin", "-v", "error", "-y", "-i", f"file:{recording}", "-map", "0:a:0")
    only = ("-af", f"pan=mono|c0=c{channel - 1}")
    command = [*source, *only, *OPUS, *BITEXACT, "-f", "ogg", f"file:{target}"]
    try:
        await run("ffmpeg", command, seconds=SECONDS)
    except Complaint as complaint:
        raise OperationRefused("The recording cannot be decoded.") from complaint
