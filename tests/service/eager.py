"""An application that connects to its own port (PORT) while it starts, and again at the moment at
which the log says that it serves. It reports to stderr what happens.

With RIVAL, it listens on the port itself while it starts, like another process that has bound the
port at the same time.
"""

import logging
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

ADDRESS = ("127.0.0.1", int(os.environ["PORT"]))
REQUEST = b"GET /own HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def connect(when: str) -> socket.socket | None:
    try:
        connected = socket.create_connection(ADDRESS)
    except ConnectionRefusedError:
        print(f"{when}: refused", file=sys.stderr)
        return None
    print(f"{when}: connected", file=sys.stderr)
    return connected


class OnServing(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        # The event loop waits here, so uvicorn has not accepted anything yet.
        if record.msg.startswith("Serving on") and (connected := connect("serving")):
            connected.sendall(REQUEST)
            threading.Thread(target=self._read, args=[connected]).start()

    def _read(self, connected: socket.socket) -> None:
        with connected.makefile("rb") as answer:
            print("answer:", answer.readline().decode(), file=sys.stderr)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    connect("starting")
    logging.getLogger("batchmill.service").addHandler(OnServing())
    with socket.socket() as rival:
        if "RIVAL" in os.environ:
            rival.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            rival.bind(ADDRESS)
            rival.listen()
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/own")
async def get_own() -> str:
    return "own"
