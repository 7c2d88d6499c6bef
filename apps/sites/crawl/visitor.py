"""Requests one address, politely and within the limits of the crawl."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from apps.sites.crawl.allowance import Allowance, AllowanceSpent
from apps.sites.crawl.delay import Delay
from apps.sites.crawl.limits import CrawlLimits
from apps.sites.crawl.normalise import resolve
from batchmill import (
    BadStatus,
    BadUrl,
    FetchError,
    FetchResponse,
    FetchSession,
    Permanent,
    ResponseTooLarge,
    ResponseTooSlow,
    TooManyRedirects,
    Transient,
)

HOPS = 5
_MOVES = (301, 302, 303, 307, 308)
_BUSY = (429, 503)
# Seconds to leave a busy server alone, if it does not say how long.
_REST = 1.0

Accept = Callable[[FetchResponse], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """`url` is the address of the request, to the letter."""

    url: str
    status: int
    body: bytes = field(repr=False)
    content_type: str | None
    robots_tags: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Moved:
    """A redirect, which is not followed. `url` is its target."""

    url: str
    status: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Failed:
    error: FetchError | Permanent | Transient
    seconds: float


class Visitor:
    def __init__(self, session: FetchSession, limits: CrawlLimits):
        self.allowance = Allowance(limits)
        self.delay = Delay()
        self._session = session
        self._limits = limits

    async def attempt(self, url: str, accept: Accept) -> Answer | Moved | Failed:
        """Raises AllowanceSpent if the crawl is over before the request begins."""
        await self._wait()
        began = time.monotonic()
        try:
            return await self._request(url, self._limits.page_bytes, accept)
        except AllowanceSpent:
            error = ResponseTooLarge("The pages of this crawl are larger than its limit of bytes.")
            return Failed(error, time.monotonic() - began)
        except (FetchError, Permanent, Transient) as error:
            return Failed(error, time.monotonic() - began)

    async def request(
        self, url: str, *, most: int | None = None, accept: Accept | None = None, cut: bool = False
    ) -> Answer | Moved:
        """`accept` sees the headers and the first bytes, and raises to leave the rest. A body with
        more than `most` bytes is an error, or is cut off."""
        await self._wait()
        return await self._request(url, most or self._limits.page_bytes, accept, cut=cut)

    async def follow(
        self,
        url: str,
        *,
        may: Callable[[str], bool] = lambda _: True,
        most: int | None = None,
        accept: Accept | None = None,
    ) -> Answer:
        """Follows redirects to addresses that `may` accepts. The body is cut off at `most`."""
        for _ in range(HOPS + 1):
            answer = await self.request(url, most=most, accept=accept, cut=True)
            if isinstance(answer, Answer):
                return answer
            url = answer.url
            if not may(url):
                raise BadUrl("The address redirects to another site.")
        raise TooManyRedirects("The address redirects too many times.")

    async def _request(
        self, url: str, most: int, accept: Accept | None, *, cut: bool = False
    ) -> Answer | Moved:
        began = time.monotonic()
        try:
            async with asyncio.timeout(min(self._limits.page_seconds, self._seconds_left())):
                return await self._answer(url, most, accept, cut)
        except TimeoutError as error:
            raise ResponseTooSlow("The page takes too long to arrive.") from error
        except BadStatus as error:
            if error.status in _BUSY:
                self._rest(error)
            if error.status in _MOVES and "location" in error.headers:
                return Moved(_target(url, error), error.status, time.monotonic() - began)
            raise

    async def _answer(self, url: str, most: int, accept: Accept | None, cut: bool) -> Answer:
        began = time.monotonic()
        async with self._session.get(url, follow=False) as response:
            if accept:
                accept(response)
            body = await self._body(response, most, cut)
        return Answer(
            url,
            response.status,
            body,
            response.content_type,
            tuple(response.headers.get_list("x-robots-tag")),
            time.monotonic() - began,
        )

    async def _body(self, response: FetchResponse, most: int, cut: bool) -> bytes:
        body = bytearray()
        async for chunk in response.chunks():
            self.allowance.receive(len(chunk))
            body += chunk
            if len(body) > most and cut:
                break
            if len(body) > most:
                raise ResponseTooLarge(f"The page is larger than the limit of {most:,} bytes.")
        return bytes(body[:most])

    async def _wait(self) -> None:
        self.allowance.check()
        seconds = self.delay.take(time.monotonic())
        if seconds > self.allowance.seconds_left:
            raise AllowanceSpent("time")
        await asyncio.sleep(seconds)

    def _seconds_left(self) -> float:
        return max(self.allowance.seconds_left, 0.0)

    def _rest(self, error: BadStatus) -> None:
        asked = seconds_of(error.headers.get("retry-after"))
        seconds = min(_REST if asked is None else asked, self._limits.delay)
        self.delay.rest(time.monotonic(), seconds)


def seconds_of(header: str | None) -> float | None:
    """A Retry-After header in seconds. One that is a date is not used."""
    return float(header) if header and header.isascii() and header.isdigit() else None


def _target(url: str, error: BadStatus) -> str:
    """To the letter: a server may need the session that it has put into the address."""
    target = resolve(error.headers["location"], url)
    if target is None:
        raise BadUrl("The address redirects to an invalid address.") from error
    if url.startswith("https:") and target.startswith("http:"):
        raise BadUrl("The address redirects from https to http, which is not encrypted.") from error
    return target
