"""Knowing that the process is about to stop before the server waits for streams to end."""

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
    """Calls `stop` when the server is signalled, and leaves the rest to the server.

    A server tells an application that it stops only when all answers are sent, and streams do not
    end before they are told.
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
    """Those of the server; a signal that has none is left alone, and so are all in a thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in SIGNALS}
    return {number: handler for number, handler in found.items() if callable(handler)}
