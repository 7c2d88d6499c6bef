"""A real server on loopback with the chat protocol of OpenAI, and with faults."""

import asyncio
import json
from collections import Counter, defaultdict, deque
from contextlib import suppress
from typing import Any, Self

from tests.fetch.site import answer, header

# What happens to a request: a status with headers, or one of these.
HANGS, BREAKS, TRUNCATED, EMPTY = "hangs", "breaks", "truncated", "empty"
Fault = str | bytes


def status(code: int, body: bytes = b"{}", **headers: str) -> bytes:
    return answer(body, status=code, **headers)


class Endpoint:
    """`asked` has the questions that came in, `paid` those that it answered in full, `held` those
    that wait for the gate, and `most_at_once` how many were under way at the same time. While
    `gate` is clear, it answers nothing. Faults of a question are used up in order, and then it is
    answered."""

    def __init__(self, key: str | None = None) -> None:
        self.asked: list[str] = []
        self.paid: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.most_at_once = 0
        self.held: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.answers: defaultdict[str, str] = defaultdict(lambda: "Try **Acme**.")
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.always: Fault | None = None
        self._key = key
        self._stop_at: int | None = None
        self._at_once = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop_after(self, answers: int) -> None:
        """Holds all questions after it has given as many answers."""
        self._stop_at = answers

    def drop(self) -> None:
        """Forgets the questions that are held, and answers again."""
        for task in self._tasks:
            task.cancel()
        self.held.clear()
        self._stop_at = None
        self.gate.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._answer(reader, writer)
        self._at_once -= 1
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        body = json.loads(await reader.readexactly(int(header(head, "content-length") or 0)))
        question = body["messages"][-1]["content"]
        self.asked.append(question)
        self.models[body["model"]] += 1
        self.held.append(question)
        await self.gate.wait()
        self.held.remove(question)
        fault = self._fault(question, header(head, "authorization"))
        if fault == HANGS:
            await asyncio.Event().wait()
        sent = self._sent(question, fault)
        self.paid[question] += fault is None
        if self._stop_at is not None and self.paid.total() >= self._stop_at:
            self.gate.clear()
        writer.write(sent)
        await writer.drain()

    def _fault(self, question: str, authorization: str | None) -> Fault | None:
        if self._key is not None and authorization != f"Bearer {self._key}":
            return status(401, b'{"error": "Incorrect API key"}')
        if self.faults[question]:
            return self.faults[question].popleft()
        return self.always

    def _sent(self, question: str, fault: Fault | None) -> bytes:
        if isinstance(fault, bytes):
            return fault
        whole = completion("" if fault == EMPTY else self.answers[question])
        if fault == TRUNCATED:
            return answer(whole[: len(whole) // 2], content_type="application/json")
        return b"" if fault == BREAKS else answer(whole, content_type="application/json")


def completion(text: str) -> bytes:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return json.dumps({"choices": [choice], "usage": usage}).encode()
