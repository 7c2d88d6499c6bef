"""Sends one HTTP request to a provider, without retries.

It raises errors that tell the engine whether to retry, and after which delay. Their messages are
for end users. Operators see the beginning of the provider's answer as the cause of the error.
"""

import asyncio
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import httpx
from pydantic import ValidationError

from apps.calls.providers.contract import ProviderNotConfigured
from batchmill import Permanent, Transient

MIB = 1 << 20
DAY = 86_400.0
# Bytes of the body of an error that operators see.
EXCERPT = 1_000
TOO_MANY = 429
# About the key, of which their bodies may contain parts.
REFUSED = (401, 403)
QUERY = re.compile(r"\?[^\s\"'<>]*")


class ProviderUnavailable(Transient):
    """The provider does not answer, or asks to try again later."""

    def __init__(self, message: str, *, retry_after: float | None = None):
        super().__init__(message, code="PROVIDER_UNAVAILABLE", retry_after=retry_after)


class ProviderRejected(Permanent):
    """The provider rejects the key or the request."""

    def __init__(self, message: str):
        super().__init__(message, code="PROVIDER_REJECTED")


class AnswerNotUnderstood(Permanent):
    """The answer is JSON, but not in the documented format. The next answer would be the same. The
    operation may have succeeded, so it is kept, and no other one is started."""

    def __init__(self, name: str):
        super().__init__(
            f"{name} answers in a format that this server does not understand. The operator has to "
            "update the server. Retry the call after that.",
            code="ANSWER_NOT_UNDERSTOOD",
        )


class Reply(Exception):
    """The status and the beginning of an answer, as the cause of an error. For operators only."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    content: bytes
    reply: Reply

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`name` is the provider's name in messages. `authorization` is the value of that header.
    Seconds: `connect` to connect, `read` between two reads, `total` for a request. `size` limits
    the bytes of an answer."""

    name: str
    authorization: str | None = field(default=None, repr=False)
    connect: float = 10.0
    read: float = 60.0
    total: float = 90.0
    size: int = 64 * MIB

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, **body: Any
    ) -> Answer:
        """The answer, unless its status means that the provider is busy, is broken, or rejects the
        key. `body` is passed to httpx."""
        try:
            async with asyncio.timeout(self.total):
                answer, retry_after = await self._send(method, url, headers or {}, body)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise ProviderUnavailable(f"{self.name} did not answer in time.") from error
        except httpx.HTTPError as error:
            raise ProviderUnavailable(f"{self.name} could not be reached.") from error
        self._check(answer, retry_after)
        return answer

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> tuple[Answer, float | None]:
        # Some servers compress although they are asked not to: see `_answer`.
        sent = {"Accept-Encoding": "identity", **headers}
        if self.authorization:
            sent["Authorization"] = self.authorization
        timeout = httpx.Timeout(self.read, connect=self.connect)
        async with (
            httpx.AsyncClient(verify=tls(), timeout=timeout, trust_env=False) as client,
            client.stream(method, url, headers=sent, **body) as response,
        ):
            return await self._answer(response), seconds_until(response.headers.get("retry-after"))

    async def _answer(self, response: httpx.Response) -> Answer:
        content = bytearray()
        if is_encoded(response):
            # For an error, the status is enough.
            if response.is_success:
                raise ProviderRejected(
                    f"{self.name} compresses its answers although the request forbids it. The "
                    "operator has to check the URL of the service and the proxies in front of it."
                )
        else:
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > self.size:
                    raise ProviderRejected(f"The answer of {self.name} is too long.")
        return Answer(response.status_code, bytes(content), self._reply(response, content))

    def _reply(self, response: httpx.Response, content: bytearray) -> Reply:
        status = response.status_code
        if status in REFUSED:
            return Reply(f"{self.name} answered {status}")
        return Reply(f"{self.name} answered {status}: {scrubbed(bytes(content), self._secret)}")

    @property
    def _secret(self) -> str:
        return (self.authorization or "").rpartition(" ")[2]

    def _check(self, answer: Answer, retry_after: float | None) -> None:
        if answer.status in REFUSED:
            raise ProviderRejected(
                f"{self.name} rejects the key of this server. The operator has to replace it."
            ) from answer.reply
        if answer.status == TOO_MANY:
            raise ProviderUnavailable(
                f"{self.name} limits the rate of requests.", retry_after=retry_after
            ) from answer.reply
        if answer.status >= 500 or answer.status == 408:
            raise ProviderUnavailable(
                f"{self.name} is not available.", retry_after=retry_after
            ) from answer.reply


def is_not_json(error: ValidationError) -> bool:
    """Whether the text is not JSON at all. Then a proxy may have sent it, or it was cut."""
    return error.errors(include_input=False)[0]["type"] == "json_invalid"


@cache
def tls() -> ssl.SSLContext:
    """Takes tens of milliseconds to make."""
    return httpx.create_ssl_context(trust_env=False)


def is_encoded(response: httpx.Response) -> bool:
    """A few bytes of a compressed body may decode to gigabytes."""
    codings = response.headers.get("Content-Encoding", "").lower().split(",")
    return any(coding.strip() not in ("", "identity") for coding in codings)


def authorization(scheme: str, key: str, variable: str) -> str:
    """An error of the HTTP library about an invalid header would contain the key."""
    plain = key.strip()
    if not (plain.isascii() and plain.isprintable()):
        raise ProviderNotConfigured(f"{variable} must consist of printable ASCII characters.")
    return f"{scheme} {plain}"


def scrubbed(content: bytes, secret: str = "") -> str:
    """The beginning of a text, without the key and without the signatures of links."""
    text = QUERY.sub("?[…]", content[:EXCERPT].decode(errors="replace"))
    return text.replace(secret, "[key]") if secret else text


def seconds_until(given: str | None) -> float | None:
    """The seconds of a Retry-After header, which is a number or a date."""
    if given is None:
        return None
    with suppress(ValueError):
        return min(max(0.0, float(given)), DAY)
    with suppress(ValueError):
        moment = parsedate_to_datetime(given)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return min(max(0.0, (aware - datetime.now(UTC)).total_seconds()), DAY)
    return None
