"""Detects that the process is stopping before the server waits for streams to end."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def called_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Calls `stop` when the server receives a signal, and leaves the rest to the server.

    A server notifies an application only after all answers are sent, and streams do not end until
    they are notified.
    """
    loop, servers = asyncio.get_running_loop(), handlers()

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)
        servers[number](number, frame)

    for number in servers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        stop()
        for number, server in servers.items():
            signal.signal(number, server)


def handlers() -> dict[int, Callable[[int, FrameType | None], Any]]:
    """The server's signal handlers. Only callable ones, and none outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in SIGNALS}
    return {number: handler for number, handler in found.items() if callable(handler)}
