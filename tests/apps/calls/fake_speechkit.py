"""A server that speaks the protocols of SpeechKit and of OpenAI's transcriptions, with faults.

It counts what was paid. Tests start it in their own process (`FakeSpeechKit`) or as another process
(`FakeProcess`, or `python -m tests.apps.calls.fake_speechkit --port 8123 --seconds 30`). Both are
controlled over HTTP too:

    GET  /counts     how often each request was made, and how many operations were paid
    POST /faults     {"route": "start", "kind": "busy", "times": 2, "after": 1, "retryAfter": "7"}
    POST /behaviour  {"seconds": 30, "looks": 2, "idempotent": false, ...}
    POST /release    ends the waiting of all requests that are held

An operation is done after `seconds` and after `looks` unfinished looks. A fault happens `times`
times, after so many requests without it. Its routes are `start`, `look`, `cancel` and `transcribe`.
The kinds are:

    busy       429, with Retry-After if it is given
    broken     503, with Retry-After if it is given
    forbidden  401
    invalid    400
    missing    404 of the service
    nowhere    404 of another server
    moved      302
    disallowed 405
    large      413
    garbage    200 without JSON
    unknown    200 with JSON in a format that nobody has documented
    gzip       200 with a compressed body
    empty      200 with an operation that is done, and has neither a response nor an error
    silent     accepts the request, does nothing and never answers
    held       does what the request asks for, and answers after a release
    lost       does what the request asks for, and closes the connection without an answer
"""

import argparse
import gzip
import hashlib
import json
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self

import httpx

from tests.streams.processes import ServerProcess

KEY = "fake-key-4711"
STATUSES = {
    "busy": 429,
    "broken": 503,
    "forbidden": 401,
    "invalid": 400,
    "missing": 404,
    "nowhere": 404,
    "moved": 302,
    "disallowed": 405,
    "large": 413,
}
# Channel, start and text of each utterance that SpeechKit hears in every recording.
CONVERSATION = (
    (1, 0.5, "Thank you for calling Platinum Motors"),
    (2, 3.2, "My name is Jack"),
    (1, 5.25, "How can I help you"),
)
# What a transcription service hears in the first file that it gets, and in the second.
FILES = ("Thank you for calling Platinum Motors.", "My name is Jack.")


@dataclass
class Behaviour:
    """`idempotent`: a second start with the same key returns the same operation. `problem` is the
    code and the message of the error in which new operations end. `detail` is what transcriptions
    contain: `words`, `segments` or `text`."""

    seconds: float = 0.0
    looks: int = 0
    idempotent: bool = True
    problem: tuple[int, str] | None = None
    detail: str = "words"


@dataclass
class Operation:
    id: str
    key: str | None
    config: dict[str, Any]
    uri: str
    audio: int
    problem: tuple[int, str] | None
    started: float = field(default_factory=time.monotonic)
    looks: int = 0
    cancelled: bool = False


@dataclass
class Fault:
    kind: str
    times: int = 1
    after: int = 0
    retry_after: str | None = None


class State:
    """What the threads of the server share. All methods are called under the lock."""

    def __init__(self, behaviour: Behaviour):
        self.lock = threading.Lock()
        self.behaviour = behaviour
        self.operations: dict[str, Operation] = {}
        self.faults: dict[str, list[Fault]] = {}
        self.requests: Counter[str] = Counter()
        self.transcriptions: list[dict[str, Any]] = []
        self.heard: list[str] = []
        self.released = threading.Event()

    def next_fault(self, route: str) -> Fault | None:
        left = self.faults.get(route)
        if not left:
            return None
        fault = left[0]
        if fault.after > 0:
            fault.after -= 1
            return None
        fault.times -= 1
        return left.pop(0) if fault.times <= 0 else fault

    def counts(self) -> dict[str, Any]:
        """`paid` counts the operations and transcriptions that cost money."""
        operations = list(self.operations.values())
        return {
            "paid": len(operations) + len(self.transcriptions),
            "requests": dict(self.requests),
            "cancelled": sum(operation.cancelled for operation in operations),
            "operations": [asdict(operation) for operation in operations],
            "transcriptions": self.transcriptions,
        }

    def start(self, key: str | None, body: dict[str, Any], audio: int | str) -> dict[str, Any]:
        known = [op for op in self.operations.values() if key and op.key == key]
        if known and self.behaviour.idempotent:
            return {"id": known[0].id, "done": False}
        id = f"e03{len(self.operations):012}"
        problem = (3, audio) if isinstance(audio, str) else self.behaviour.problem
        size = 0 if isinstance(audio, str) else audio
        self.operations[id] = Operation(
            id, key, body["config"], body["audio"]["uri"], size, problem
        )
        return {"id": id, "done": False}

    def look(self, id: str) -> dict[str, Any] | None:
        if (operation := self.operations.get(id)) is None:
            return None
        operation.looks += 1
        waited = time.monotonic() - operation.started
        if operation.cancelled:
            return {"id": id, "done": True, "error": {"code": 1, "message": "cancelled"}}
        if operation.looks <= self.behaviour.looks or waited < self.behaviour.seconds:
            return {"id": id, "done": False}
        if operation.problem:
            code, message = operation.problem
            return {"id": id, "done": True, "error": {"code": code, "message": message}}
        return {"id": id, "done": True, "response": {"chunks": [chunk(*u) for u in CONVERSATION]}}

    def cancel(self, id: str) -> dict[str, Any] | None:
        if (operation := self.operations.get(id)) is None:
            return None
        operation.cancelled = True
        return {"id": id, "done": True}

    def transcribe(self, given: dict[str, Any], audio: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(audio).hexdigest()
        if digest not in self.heard:
            self.heard.append(digest)
        number = self.heard.index(digest)
        self.transcriptions.append({**given, "bytes": len(audio), "file": number})
        return verbose(FILES[number % len(FILES)], self.behaviour.detail)


def chunk(channel: int, start: float, text: str) -> dict[str, Any]:
    """Each word takes 0.25 seconds."""
    words = [
        {"startTime": f"{at:.9f}s", "endTime": f"{at + 0.2:.9f}s", "word": word, "confidence": 1}
        for at, word in enumerate_times(start, text)
    ]
    best = {"text": text, "words": words, "confidence": 1}
    return {"alternatives": [best, {"text": "something else"}], "channelTag": str(channel)}


def verbose(text: str, detail: str) -> dict[str, Any]:
    words = [
        {"word": word, "start": at, "end": at + 0.2} for at, word in enumerate_times(0.0, text)
    ]
    segment = {"id": 0, "start": 0.0, "end": words[-1]["end"], "text": f" {text}"}
    parts = {"words": ["segments", "words"], "segments": ["segments"], "text": []}[detail]
    known = {"segments": [segment], "words": words}
    return {"task": "transcribe", "text": text} | {name: known[name] for name in parts}


def enumerate_times(start: float, text: str) -> list[tuple[float, str]]:
    return [(start + 0.25 * number, word) for number, word in enumerate(text.split())]


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str):
        self.status = status
        self.message = message


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: ClassVar[State]
    closing: ClassVar[threading.Event]

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_GET(self) -> None:
        if self.path == "/counts":
            with self.state.lock:
                self.answer(200, self.state.counts())
        else:
            self.serve("look", lambda: self.found(self.state.look, self.path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match self.path:
            case "/faults":
                self.add_fault(json.loads(body))
            case "/behaviour":
                self.change_behaviour(json.loads(body))
            case "/release":
                self.state.released.set()
                self.answer(200, {})
            case "/speech/stt/v2/longRunningRecognize":
                self.serve("start", lambda: self.start(json.loads(body)))
            case "/v1/audio/transcriptions":
                self.serve("transcribe", lambda: self.transcribe(body))
            case path if path.startswith("/operations/") and path.endswith(":cancel"):
                self.serve("cancel", lambda: self.found(self.state.cancel, path))
            case _:
                self.answer(404, {"message": "no such path"})

    def serve(self, route: str, act: Callable[[], dict[str, Any]]) -> None:
        with self.state.lock:
            self.state.requests[route] += 1
            fault = self.state.next_fault(route)
        if fault is None or fault.kind in ("lost", "held"):
            self.act(act, fault.kind if fault else None)
        elif fault.kind == "silent":
            self.closing.wait()
            self.close_connection = True
        elif fault.kind in ("garbage", "nowhere"):
            self.send(STATUSES.get(fault.kind, 200), b"<html>", {})
        elif fault.kind == "gzip":
            self.send(200, gzip.compress(b"{}"), {"Content-Encoding": "gzip"})
        elif fault.kind == "unknown":
            self.answer(
                200, {"id": "1", "done": True, "response": {"chunks": [{"channelTag": "left"}]}}
            )
        elif fault.kind == "empty":
            self.answer(200, {"id": "1", "done": True})
        else:
            extra = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            body = {"code": 5, "message": f"You sent {KEY}."}
            self.answer(STATUSES[fault.kind], body, extra)

    def act(self, act: Callable[[], dict[str, Any]], fault: str | None) -> None:
        try:
            if KEY not in self.headers.get("Authorization", ""):
                raise Refused(401, f"The key is not {KEY}.")
            status, body = 200, act()
        except Refused as refused:
            status, body = refused.status, {"code": 3, "message": refused.message}
        if fault == "held":
            self.state.released.wait()
        if fault == "lost":
            self.close_connection = True
        else:
            self.answer(status, body)

    def start(self, body: dict[str, Any]) -> dict[str, Any]:
        specification = body["config"]["specification"]
        if specification.get("audioEncoding") != "OGG_OPUS" or "languageCode" not in specification:
            raise Refused(400, "bad specification")
        if "audioChannelCount" in specification:
            raise Refused(400, "OGG says itself how many channels it has")
        audio = downloaded(body["audio"]["uri"])
        with self.state.lock:
            return self.state.start(self.headers.get("Idempotency-Key"), body, audio)

    def transcribe(self, body: bytes) -> dict[str, Any]:
        kind = self.headers["Content-Type"].encode()
        form = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + kind + b"\r\n\r\n" + body)
        given, audio = {}, b""
        for part in form.iter_parts():
            name, content = part.get_param("name", header="content-disposition"), part.get_content()
            if part.get_filename():
                audio = content
            else:
                given.setdefault(name, []).append(content.strip())
        with self.state.lock:
            return self.state.transcribe(given, audio)

    def found(self, act: Callable[[str], dict[str, Any] | None], path: str) -> dict[str, Any]:
        with self.state.lock:
            operation = act(path.removesuffix(":cancel").split("/")[-1])
        if operation is None:
            raise Refused(404, "Operation is not found")
        return operation

    def add_fault(self, given: dict[str, Any]) -> None:
        fault = Fault(
            given["kind"], given.get("times", 1), given.get("after", 0), given.get("retryAfter")
        )
        with self.state.lock:
            self.state.faults.setdefault(given["route"], []).append(fault)
        self.answer(200, {})

    def change_behaviour(self, given: dict[str, Any]) -> None:
        with self.state.lock:
            for name in {f.name for f in fields(Behaviour)} & given.keys():
                setattr(self.state.behaviour, name, given[name])
        self.answer(200, {})

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self.send(status, json.dumps(body).encode(), headers or {})

    def send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def downloaded(uri: str) -> int | str:
    """The size of the file, or why it cannot be read. The reason contains the link, as that of the
    real service may."""
    try:
        with urllib.request.urlopen(uri, timeout=10) as answer:
            content = answer.read()
    except (OSError, ValueError):
        return f"cannot read {uri}"
    return len(content) if content.startswith(b"OggS") else f"{uri} is not OGG"


class Controls:
    """Controls a server over HTTP, in this process or another."""

    url: str

    @property
    def counts(self) -> dict[str, Any]:
        return httpx.get(f"{self.url}/counts").json()

    @property
    def paid(self) -> int:
        return self.counts["paid"]

    def fail(
        self,
        route: str,
        kind: str,
        times: int = 1,
        after: int = 0,
        retry_after: str | None = None,
    ) -> None:
        body = {"route": route, "kind": kind, "times": times, "after": after}
        body |= {"retryAfter": retry_after}
        httpx.post(f"{self.url}/faults", json=body).raise_for_status()

    def behave(self, **behaviour: Any) -> None:
        httpx.post(f"{self.url}/behaviour", json=behaviour).raise_for_status()

    def release(self) -> None:
        httpx.post(f"{self.url}/release").raise_for_status()

    @property
    def environment(self) -> dict[str, str]:
        """The settings of an application that uses this server."""
        return {
            "SPEECHKIT_API_KEY": KEY,
            "SPEECHKIT_BASE_URL": self.url,
            "SPEECHKIT_OPERATIONS_URL": self.url,
            "CALLS_TRANSCRIPTION_URL": f"{self.url}/v1",
            "CALLS_TRANSCRIPTION_KEY": KEY,
        }


class FakeSpeechKit(Controls):
    """The server in this process, while the block runs."""

    def __init__(self, port: int = 0, **behaviour: Any):
        self._closing = threading.Event()
        self._state = state = State(Behaviour(**behaviour))
        handler = type("Handler", (Handler,), {"state": state, "closing": self._closing})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._state.released.set()
        self._server.shutdown()
        self._server.server_close()

    def serve(self) -> None:
        self._server.serve_forever()


class FakeProcess(Controls, ServerProcess):  # pyright: ignore[reportIncompatibleVariableOverride]
    """The server as another process."""

    def __init__(self, **options: Any):
        super().__init__("", None, **options)

    def _command(self) -> list[str]:
        return ["tests.apps.calls.fake_speechkit", f"--port={self.port}", *self._options]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--looks", type=int, default=0)
    parser.add_argument("--idempotent", type=int, default=1)
    given = vars(parser.parse_args())
    FakeSpeechKit(**given | {"idempotent": bool(given["idempotent"])}).serve()


if __name__ == "__main__":
    main()
