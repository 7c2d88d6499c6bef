"""Recordings for the tests, spoken by espeak-ng and converted by ffmpeg."""

import shutil
import subprocess
from pathlib import Path

import pytest

AGENT = "Thank you for calling. How can I help you today?"
CALLER = "Hello. My name is Jack, and I want to buy a red car."
SECONDS = 9.0
OPUS = ("-c:a", "libopus", "-b:a", "32k", "-application", "voip", "-f", "ogg")


def ffmpeg(*arguments: str, given: bytes | None = None) -> bytes:
    if shutil.which("ffmpeg") is None:
        pytest.skip("Debian's ffmpeg is not installed.")
    command = ["ffmpeg", "-v", "error", *arguments]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


def said(text: str, path: Path, voice: str) -> Path:
    if shutil.which("espeak-ng") is None:
        pytest.skip("Debian's espeak-ng is not installed.")
    subprocess.run(["espeak-ng", "-v", voice, "-s", "150", "-w", path, text], check=True)
    return path


def spoken_call(folder: Path) -> bytes:
    """The agent speaks from 0.5 s on, the caller from 4.5 s on."""
    agent = said(AGENT, folder / "agent.wav", "en-us")
    caller = said(CALLER, folder / "caller.wav", "en-us+f3")
    graph = (
        f"[0:a]adelay=500,apad=whole_dur={SECONDS}[l];[1:a]adelay=4500,apad=whole_dur={SECONDS}[r];"
        "[l][r]join=inputs=2:channel_layout=stereo[both]"
    )
    inputs = ("-i", str(agent), "-i", str(caller))
    return ffmpeg(*inputs, "-filter_complex", graph, "-map", "[both]", *OPUS, "-")


def generated(source: str) -> bytes:
    """What a filter of ffmpeg generates."""
    return ffmpeg("-f", "lavfi", "-i", source, *OPUS, "-")


def filtered(recording: bytes, graph: str) -> bytes:
    """A recording after a filter of ffmpeg with the output `out`."""
    return ffmpeg("-i", "-", "-filter_complex", graph, "-map", "[out]", *OPUS, "-", given=recording)
