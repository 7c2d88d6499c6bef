"""fakellm, an OpenAI-compatible server that others have written, with a log of all its requests.

fakellm itself keeps the last 50 requests without their ends, answers at once, and sends no headers
such as `Retry-After`. So a layer before it writes down when each request came and when its answer
was ready, lets each model take its time, and adds the header to answers with 429.

python -m tests.apps.sites.llm PORT CONFIG
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import uvicorn

from tests.library.tools import until
from tests.postgres import free_port
from tests.streams.processes import ROOT

# Seconds that a model takes for an answer.
SECONDS = {"quick": 0.02, "steady": 0.06, "slow": 0.25}
RETRY_AFTER = 1
# Each question is answered, but some not at first. JSON is YAML.
RULES = [
    {
        "name": "busy",
        "when": {"model_matches": "quick", "messages_contain": "Question 1 ", "turn": 1},
        "respond": {"status": 429, "error": "busy"},
    },
    {
        "name": "broken",
        "when": {"model_matches": "steady", "messages_contain": "Question 3 ", "turn": 1},
        "respond": {"status": 500, "error": "broken"},
    },
    {"name": "answer", "respond": {"content": "1. **Acme**\n2. Heart Roasters"}},
]


@dataclass(frozen=True)
class Request:
    """`came` and `ready` are times of this machine's clock, in seconds. An answer is ready before
    its first byte is sent."""

    model: str
    question: str
    came: float
    ready: float
    status: int


class LoggedModels:
    """An ASGI application before that of fakellm."""

    def __init__(self, app: Any):
        self._app = app
        self._log: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == "/log":
            await answer(send, json.dumps(self._log).encode())
        elif scope.get("path") == "/v1/chat/completions":
            await self._ask(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _ask(self, scope: Any, receive: Any, send: Any) -> None:
        came, body, more = time.time(), b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        given = json.loads(body)
        model, question = given["model"], given["messages"][-1]["content"]
        await asyncio.sleep(SECONDS[model])

        async def again() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                ready, status = time.time(), message["status"]
                entry = Request(model, question, came, ready, status)
                self._log.append(vars(entry))
                if status == 429:
                    message["headers"].append((b"retry-after", b"%d" % RETRY_AFTER))
            await send(message)

        # Otherwise the same question to another model would be the same conversation.
        name = f"{model} {question}".encode()
        headers = [*scope["headers"], (b"x-fakellm-conversation-id", name)]
        await self._app({**scope, "headers": headers}, again, sent)


async def answer(send: Any, body: bytes) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Models:
    """The server as a process."""

    def __init__(self, folder: Path):
        self._port = free_port()
        self._config = folder / "fakellm.yaml"
        self._config.write_text(json.dumps({"version": 1, "rules": RULES}))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        command = [sys.executable, "-m", "tests.apps.sites.llm", str(self._port), self._config]
        self._process = subprocess.Popen(command, cwd=ROOT)
        await until(lambda: self._answers())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def log(self) -> list[Request]:
        found = httpx.get(f"{self.url}/log", trust_env=False, timeout=60).json()
        return sorted((Request(**each) for each in found), key=lambda each: each.came)

    def _answers(self) -> bool:
        assert self._process.poll() is None
        try:
            return httpx.get(f"{self.url}/log", trust_env=False).is_success
        except httpx.TransportError:
            return False


def most_at_once(spans: Iterable[tuple[float, float]]) -> int:
    """The largest number of spans that overlap. One that begins when another ends does not."""
    changes = sorted(
        change for began, ended in spans for change in ((began, 1), (max(began, ended), -1))
    )
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def most_in_window(starts: Iterable[float], seconds: float) -> int:
    """The largest number of starts in any window of this length."""
    times, first, most = sorted(starts), 0, 0
    for place, at in enumerate(times):
        while at - times[first] >= seconds:
            first += 1
        most = max(most, place - first + 1)
    return most


if __name__ == "__main__":
    os.environ["FAKELLM_CONFIG"] = sys.argv[2]
    from fakellm.server import app

    uvicorn.run(LoggedModels(app), port=int(sys.argv[1]), log_level="critical")
