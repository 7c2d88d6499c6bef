"""Asks a model at an OpenAI-compatible endpoint.

A call sends one request and does not retry. It raises errors that tell the engine whether to retry
the job, and after which delay.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel

from batchmill.errors import (
    InvalidInput,
    ModelAnswerTooLong,
    ModelBadStatus,
    ModelTooSlow,
    ModelUnreachable,
)
from batchmill.models.answer import (
    TOKENS,
    Completion,
    ModelAnswer,
    answered,
    bad_answer,
    read_completion,
    read_text,
    read_value,
)
from batchmill.models.question import OutputMode, Part, Question

T = TypeVar("T", bound=BaseModel)

MIB = 1 << 20
# Bytes of the body of an error that operators see.
EXCERPT = 1_000
# The bodies of these statuses may contain parts of the key.
ABOUT_THE_KEY = (401, 403)


class Recorder(Protocol):
    """A job, which records what a call used."""

    def use(self, name: str, amount: int) -> None: ...


class ModelClient:
    """`base_url` is the address of the API, to which `/chat/completions` is added. `options` are
    more fields of every request, for example `{"temperature": 0}`.

    `connect` limits the seconds to connect, `read` the seconds between two reads, and `total` the
    seconds of a call. `size` limits the bytes of an answer. The client has no connections of its
    own, so it can be shared by threads and event loops, and needs no closing. Proxies from the
    environment are ignored.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        output: OutputMode = "json_schema",
        options: Mapping[str, Any] | None = None,
        connect: float = 10.0,
        read: float = 120.0,
        total: float = 300.0,
        size: int = 4 * MIB,
        tls: ssl.SSLContext | None = None,
    ):
        self.model = model
        self._url = f"{_checked_url(base_url)}/chat/completions"
        self._key = _checked_key(api_key)
        self._output: OutputMode = output
        self._options = dict(options or {})
        self._timeout = httpx.Timeout(read, connect=connect)
        self._total = total
        self._size = size
        self._given_tls = tls

    async def ask(
        self,
        output: type[T],
        *parts: Part,
        instructions: str = "",
        job: Recorder | None = None,
    ) -> ModelAnswer[T]:
        """Asks one question of texts and images, and validates the answer.

        With a `job`, it records `prompt_tokens` and `completion_tokens`, also of an answer that is
        not valid.
        """
        completion = await self._complete(Question(parts, output, instructions), job)
        return answered(completion, read_value(completion, output))

    async def text(
        self, *parts: Part, instructions: str = "", job: Recorder | None = None
    ) -> ModelAnswer[str]:
        """The same for the text that a person would see. `is_cut` tells that the model reached its
        limit of tokens."""
        completion = await self._complete(Question(parts, None, instructions), job)
        text, is_cut = read_text(completion)
        return answered(completion, text, is_cut=is_cut)

    async def _complete(self, question: Question, job: Recorder | None) -> Completion:
        """Records the tokens before the answer is checked, because they cost in any case."""
        body = await self._post(question.body(self.model, self._output, self._options))
        completion = read_completion(body)
        for name in TOKENS:
            if job is not None and (count := completion.tokens(name)):
                job.use(name, count)
        return completion

    async def _post(self, body: dict[str, Any]) -> bytes:
        try:
            async with asyncio.timeout(self._total), self._response(body) as response:
                if not response.is_success:
                    raise await self._bad_status(response)
                content = await _content(response, self._size)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise ModelTooSlow("The AI model did not answer in time.") from error
        except httpx.DecodingError as error:
            raise bad_answer() from error
        except httpx.TransportError as error:
            raise ModelUnreachable("The AI model could not be reached.") from error
        if len(content) > self._size:
            raise ModelAnswerTooLong("The AI model's answer is too long.")
        return content

    @asynccontextmanager
    async def _response(self, body: dict[str, Any]) -> AsyncIterator[httpx.Response]:
        # Answers are short. Without an encoding, `size` limits the memory too.
        headers = {"Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        async with (
            httpx.AsyncClient(verify=self._tls, timeout=self._timeout, trust_env=False) as client,
            client.stream("POST", self._url, json=body, headers=headers) as response,
        ):
            yield response

    async def _bad_status(self, response: httpx.Response) -> ModelBadStatus:
        """The message is for operators. End users see the standard message for the status."""
        text = f"The endpoint answered {response.status_code}"
        if response.status_code not in ABOUT_THE_KEY:
            text = f"{text}: {await self._excerpt(response)}"
        return ModelBadStatus(text, status=response.status_code, headers=response.headers)

    async def _excerpt(self, response: httpx.Response) -> str:
        content = b""
        # If the body is cut off or encoded, the status is enough.
        with suppress(httpx.HTTPError):
            content = await _content(response, EXCERPT)
        text = content[:EXCERPT].decode(errors="replace")
        return text.replace(self._key, "[key]") if self._key else text

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or httpx.create_ssl_context(trust_env=False)


async def _content(response: httpx.Response, most: int) -> bytes:
    """The body, or its beginning if it has more than `most` bytes.

    Some endpoints compress although the request does not allow it. A few bytes of a compressed body
    may decode to gigabytes, so it is refused.
    """
    codings = response.headers.get("Content-Encoding", "").lower().split(",")
    if any(coding.strip() not in ("", "identity") for coding in codings):
        raise httpx.DecodingError("The endpoint sent an encoded body, which was not requested.")
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > most:
            break
    return bytes(content)


def _checked_url(given: str) -> str:
    url = urlsplit(given)
    if url.scheme not in ("http", "https") or not url.hostname or url.username is not None:
        raise InvalidInput(
            "The base URL of a model must be an http or https URL without a user name."
        )
    return given.rstrip("/")


def _checked_key(given: str | None) -> str | None:
    """An error of the HTTP library about an invalid header would contain the key."""
    key = (given or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InvalidInput("The API key of a model must consist of printable ASCII characters.")
    return key or None
