"""A server on loopback with the chat protocol of OpenAI, for all models of the tests."""

import json
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

from apps.sites.samples.website import QuietServer

MODELS = ("alpha", "beta")
# Both name the bakery: the first as the best, the second after another one.
ANSWERS = {
    "alpha": "1. **Tidemill Bakery** 🥖 mills its own flour.\n2. **Blue Heron Bread** has loaves.",
    "beta": "1. **Blue Heron Bread** is open all week.\n2. **Pier Pastry** has tarts.\n"
    "3. **Tidemill Bakery** sells out early.",
}
# Position (1 + 1/3) / 2, visibility 1, mentions 1/3.
SCORE = "0.70"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536

    def __init__(self, models: "FakeModels", *args: Any):
        self._models = models
        super().__init__(*args)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, sent = self._models.answer(body["model"], body["messages"][-1]["content"])
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


class FakeModels:
    """While `gate` is clear, it answers nothing. `refusing` are models that answer with 401, and
    `asked` has all questions with their models."""

    def __init__(self) -> None:
        self._server = QuietServer(("127.0.0.1", 0), partial(Handler, self))
        self.gate = threading.Event()
        self.gate.set()
        self.answers = dict(ANSWERS)
        self.refusing = set[str]()
        self.asked: list[tuple[str, str]] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()

    def reset(self) -> None:
        self.gate.set()
        self.answers = dict(ANSWERS)
        self.refusing.clear()
        self.asked.clear()

    def answer(self, model: str, question: str) -> tuple[int, bytes]:
        self.asked.append((model, question))
        self.gate.wait()
        if model in self.refusing:
            return 401, b'{"error": {"message": "Incorrect key"}}'
        message = {"role": "assistant", "content": self.answers[model]}
        usage = {"prompt_tokens": 20, "completion_tokens": 30, "total_tokens": 50}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, json.dumps({"choices": [choice], "usage": usage}).encode()

    @property
    def settings(self) -> str:
        """The value of SITES_PROVIDERS. Only the first has prices."""
        url = f"http://127.0.0.1:{self._server.server_port}/v1"
        prices = {"inputPrice": 0.5, "outputPrice": 2}
        return json.dumps(
            [
                {"name": name, "baseUrl": url, "model": name, **(prices if not number else {})}
                for number, name in enumerate(MODELS)
            ]
        )
