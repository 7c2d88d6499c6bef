"""Runs programs such as ffmpeg, with a time limit. Memory limits of this process apply to them."""

import asyncio
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from apps.calls.audio.errors import ToolFailed, ToolMissing

Sink = Callable[[bytes], object]

_READ = 1 << 16
_COMPLAINT = 4_000


class Complaint(Exception):
    """What a program wrote to stderr. It may contain paths, so it is for operators only."""

    def __init__(self, stderr: bytes):
        super().__init__(stderr[-_COMPLAINT:].decode(errors="replace"))


def output(name: str, arguments: Sequence[str], *, seconds: float) -> tuple[bytes, bytes]:
    """Returns stdout and stderr. Raises Complaint if the program ends with an error."""
    command = [_path(name), *arguments]
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        raise _too_slow(name, seconds) from error
    _require_success(name, ended.returncode, ended.stderr)
    return ended.stdout, ended.stderr


async def run(name: str, arguments: Sequence[str], *, seconds: float) -> None:
    """Runs a program without blocking the event loop. Raises Complaint if it ends with an error.
    Kills it if the caller is cancelled."""
    process = await asyncio.create_subprocess_exec(
        _path(name),
        *arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            _, stderr = await process.communicate()
    except TimeoutError as error:
        raise _too_slow(name, seconds) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    _require_success(name, process.returncode or 0, stderr)


class Pipes:
    """Runs a program that writes to several pipes at once.

    Everything goes through pipes, so the program needs no write access, and a full disk is an
    OSError of this process, not an error of the program that looks like a bad file.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._sinks: dict[int, Sink] = {}
        self._writers: list[int] = []
        self._stderr = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close_writers()
        self._stack.close()

    def to(self, sink: Sink) -> str:
        """Returns the URL to which ffmpeg writes what `sink` shall get."""
        reader, writer = os.pipe()
        self._stack.callback(os.close, reader)
        self._writers.append(writer)
        self._sinks[reader] = sink
        return f"pipe:{writer}"

    def run(self, name: str, arguments: Sequence[str], *, seconds: float) -> None:
        """Raises Complaint if the program ends with an error. Kills it if a sink raises."""
        deadline = time.monotonic() + seconds
        with subprocess.Popen(
            [_path(name), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=self._writers,
        ) as process:
            self._close_writers()
            assert process.stderr is not None
            self._sinks[process.stderr.fileno()] = self._keep_complaint
            try:
                self._pump(deadline)
                status = process.wait(max(0, deadline - time.monotonic()))
            except (TimeoutError, subprocess.TimeoutExpired) as error:
                raise _too_slow(name, seconds) from error
            finally:
                process.kill()
        _require_success(name, status, self._stderr)

    def _pump(self, deadline: float) -> None:
        with selectors.DefaultSelector() as selector:
            for reader, sink in self._sinks.items():
                selector.register(reader, selectors.EVENT_READ, sink)
            while selector.get_map():
                left = deadline - time.monotonic()
                ready = selector.select(left) if left > 0 else []
                if not ready:
                    raise TimeoutError
                for key, _ in ready:
                    if data := os.read(key.fd, _READ):
                        key.data(data)
                    else:
                        selector.unregister(key.fd)

    def _keep_complaint(self, data: bytes) -> None:
        self._stderr = (self._stderr + data)[-_COMPLAINT:]

    def _close_writers(self) -> None:
        while self._writers:
            os.close(self._writers.pop())


def _path(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ToolMissing(name)
    return path


def _require_success(name: str, status: int, stderr: bytes) -> None:
    if status < 0:
        raise ToolFailed(f"The program {name} crashed. Retry later.") from Complaint(stderr)
    if status > 0:
        raise Complaint(stderr)


def _too_slow(name: str, seconds: float) -> ToolFailed:
    return ToolFailed(f"The program {name} took longer than {seconds:g} s. Retry later.")
