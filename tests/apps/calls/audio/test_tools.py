"""Programs that are missing, hang, crash or write too much."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.calls.audio import ToolFailed, ToolMissing, tools
from batchmill import Permanent, Transient
from tests.apps.calls.audio.recordings import Recordings, extracted
from tests.library.tools import until

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a script on the PATH, before the program with the same name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def installed(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
        (folder / name).chmod(0o700)

    return installed


def test_without_ffmpeg_the_message_says_how_to_install_it(
    recordings: Recordings, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = recordings.tones("tones.wav")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="`bin/install-servers apps`") as caught:
        extracted(source, target)
    assert isinstance(caught.value, Permanent)
    assert caught.value.error_code == "TOOL_MISSING"
    assert not target.exists()


@pytest.mark.parametrize("name", ["ffprobe", "ffmpeg"])
def test_a_program_that_crashes_is_tried_again(
    name: str, install: Install, recordings: Recordings, target: Path
):
    source = recordings.tones("tones.wav")
    install(name, "kill -SEGV $$")
    with pytest.raises(ToolFailed, match=f"{name} crashed") as caught:
        extracted(source, target)
    assert isinstance(caught.value, Transient)
    assert not target.exists()


def test_a_program_that_hangs_is_killed(
    install: Install, recordings: Recordings, target: Path, tmp_path: Path
):
    source = recordings.tones("tones.wav")
    install("ffmpeg", f"echo $$ > {tmp_path}/pid; exec sleep 1000")
    with pytest.raises(ToolFailed, match="ffmpeg took longer than 0.2 s"):
        extracted(source, target, seconds=0.2)
    assert not target.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_program_that_never_stops_writing_is_killed_too(install: Install):
    heard = bytearray()
    with tools.Pipes() as pipes, pytest.raises(ToolFailed, match="longer than 0.2 s"):
        address = pipes.to(heard.extend)
        install("endless", f"exec >&{address.removeprefix('pipe:')}; while :; do echo more; done")
        pipes.run("endless", [], seconds=0.2)
    assert heard.startswith(b"more\n")


def test_ffprobe_has_a_time_limit(install: Install):
    install("ffprobe", "exec sleep 1000")
    with pytest.raises(ToolFailed, match="ffprobe took longer than 0.1 s"):
        tools.output("ffprobe", [], seconds=0.1)


def test_a_full_disk_is_not_an_error_of_the_recording(recordings: Recordings):
    """It raises an OSError, after which batchmill retries."""
    source = recordings.tones("tones.wav")
    with pytest.raises(OSError, match="No space left"):
        extracted(source, _Full("/dev/full"))


def test_only_the_end_of_many_complaints_is_kept(install: Install):
    install("loud", "yes complaint | head -c 1000000 >&2; echo the last one >&2; exit 1")
    with tools.Pipes() as pipes, pytest.raises(tools.Complaint) as caught:
        pipes.run("loud", [], seconds=60)
    assert str(caught.value).endswith("the last one\n")
    assert len(str(caught.value)) <= 4_000
    with pytest.raises(tools.Complaint) as caught:
        tools.output("loud", [], seconds=60)
    assert str(caught.value).endswith("the last one\n")
    assert len(str(caught.value)) <= 4_000


async def test_a_cancelled_program_is_killed(install: Install, tmp_path: Path):
    started = tmp_path / "pid"
    install("slow", f"echo $$ > {started}.part; mv {started}.part {started}; exec sleep 1000")
    running = asyncio.create_task(tools.run("slow", [], seconds=60))
    await until(started.exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


async def test_a_program_beside_the_event_loop_has_a_time_limit(install: Install):
    install("slow", "exec sleep 1000")
    with pytest.raises(ToolFailed, match="slow took longer than 0.1 s"):
        await tools.run("slow", [], seconds=0.1)
    install("loud", "echo no >&2; exit 1")
    with pytest.raises(tools.Complaint, match="no"):
        await tools.run("loud", [], seconds=60)


def test_no_descriptor_stays_open(recordings: Recordings, target: Path):
    descriptors = Path("/dev/fd")
    source = recordings.tones("tones.wav")
    extracted(source, target)
    before = list(descriptors.iterdir())
    extracted(source, target)
    assert list(descriptors.iterdir()) == before


class _Full(type(Path())):
    """A device that is always full. It cannot be deleted, not even by root."""

    def unlink(self, missing_ok: bool = False) -> None:
        pass
