"""The sample website as files, and as a server on loopback.

Its pages name their own addresses, so the server replaces `ORIGIN` in them with its own address.
"""

import mimetypes
import sys
import threading
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Self

ORIGIN = "https://tidemill.example"
FOLDER = files("apps.sites.samples") / "bakery"
TEXTS = (".html", ".txt", ".xml")


def sample_files(origin: str) -> dict[str, bytes]:
    """The files by their paths. `/` is the start page."""
    found = {f"/{file.name}": file.read_bytes() for file in FOLDER.iterdir() if file.is_file()}
    for path in found:
        if path.endswith(TEXTS):
            found[path] = found[path].replace(ORIGIN.encode(), origin.encode())
    found["/"] = found.pop("/index.html")
    return found


def type_of(path: str) -> str:
    kind = None if path == "/" else mimetypes.guess_type(path)[0]
    return f"{kind or 'text/html'}; charset=utf-8"


class QuietServer(ThreadingHTTPServer):
    """On a free port of the loopback interface, in threads."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may leave at any time. Other errors are shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answers with one of the files, and keeps the connection open."""

    protocol_version = "HTTP/1.1"
    # Head and body in one packet: two would wait for each other.
    wbufsize = 65_536

    def __init__(self, site: "SampleSite", *args: Any):
        self._site = site
        super().__init__(*args)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        body = self._site.answer(path)
        status = HTTPStatus.NOT_FOUND if body is None else HTTPStatus.OK
        sent = b"There is no such page." if body is None else body
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if body is None else type_of(path))
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal belongs to the demo."""


class SampleSite:
    """Serves the sample website."""

    def __init__(self) -> None:
        self._server = QuietServer(("127.0.0.1", 0), partial(Handler, self))
        self.files = sample_files(self.url)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def answer(self, path: str) -> bytes | None:
        return self.files.get(path)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
