"""One channel of a recording as a file of its own."""

import asyncio
from pathlib import Path

from apps.calls.audio.tools import Complaint, output
from apps.calls.providers.contract import OperationRefused

SECONDS = 900.0
OPUS = ("-c:a", "libopus", "-b:a", "32k", "-application", "voip")
# The same channel always gives the same bytes.
BITEXACT = ("-fflags", "+bitexact", "-flags:a", "+bitexact")


async def channel_file(recording: Path, channel: int, target: Path) -> None:
    """Writes it with ffmpeg. Channels are counted from 1."""
    source = ("-nostdin", "-v", "error", "-y", "-i", f"file:{recording}", "-map", "0:a:0")
    only = ("-af", f"pan=mono|c0=c{channel - 1}")
    command = [*source, *only, *OPUS, *BITEXACT, "-f", "ogg", f"file:{target}"]
    try:
        await asyncio.to_thread(output, "ffmpeg", command, seconds=SECONDS)
    except Complaint as complaint:
        raise OperationRefused("The recording cannot be decoded.") from complaint
