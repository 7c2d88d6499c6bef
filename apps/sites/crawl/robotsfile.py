"""Fetches robots.txt, and decides what its absence means.

    2xx                                the rules in it
    4xx, more than five redirects      no rules: everything is allowed
    5xx, 429, no answer, no valid one  nothing is allowed, until it can be read

The last line is the "complete disallow" of RFC 9309, which counts 429 with the other 4xx. Here it
counts as a busy server.
"""

from dataclasses import dataclass
from typing import Literal

from apps.sites.crawl.crawlers import AGENT, AI_CRAWLERS
from apps.sites.crawl.errors import RobotsDisallowed, RobotsUnavailable
from apps.sites.crawl.robots import ALLOWS_ALL, MOST, Robots
from apps.sites.crawl.site import Site
from apps.sites.crawl.visitor import HOPS, Answer, Visitor, seconds_of
from apps.sites.models import RobotsRules
from batchmill import AddressRefused, BadStatus, FetchError, Unreachable

_BUSY = 429


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """`error` is why it cannot be read."""

    state: Literal["read", "absent", "unavailable"]
    rules: Robots
    reason: str | None = None
    error: FetchError | None = None

    def allows(self, address: str) -> bool:
        return self.rules.allows(address, AGENT)

    def check(self, address: str) -> None:
        """Raises what a run fails with if this is its start page."""
        host = Site.of(address).host
        if isinstance(self.error, Unreachable | AddressRefused):
            # No answer at all: this is about the site, not about its robots.txt.
            raise self.error
        if self.error is not None:
            raise RobotsUnavailable(host, str(self.error), _pause(self.error)) from self.error
        if not self.allows(address):
            raise RobotsDisallowed(host)

    def report(self, start: str) -> RobotsRules:
        return RobotsRules(
            state=self.state,
            url=Site.of(start).at("/robots.txt"),
            reason=self.reason,
            crawl_delay=self.rules.delay(AGENT),
            sitemaps=self.rules.sitemaps,
            ai_crawlers={name: self.rules.allows(start, name) for name in AI_CRAWLERS},
        )


class RobotsFiles:
    """Each file is requested once."""

    def __init__(self, visitor: Visitor):
        self._visitor = visitor
        self._files: dict[str, RobotsFile] = {}

    async def of(self, address: str) -> RobotsFile:
        """The file of the address's scheme, host and port."""
        url = Site.of(address).at("/robots.txt")
        passed: list[str] = []
        found: RobotsFile | None = None
        while found is None and len(passed) <= HOPS:
            found = self._files.get(url)
            if found is None:
                passed.append(url)
                found, url = await self._read(url)
        found = found or RobotsFile("absent", ALLOWS_ALL, "It redirects more than five times.")
        self._files |= dict.fromkeys(passed, found)
        return found

    async def _read(self, url: str) -> tuple[RobotsFile | None, str]:
        """The file, or None and where it has moved to."""
        try:
            answer = await self._visitor.request(url, most=MOST, cut=True)
        except FetchError as error:
            return _without(error), url
        if not isinstance(answer, Answer):
            return None, answer.url
        return RobotsFile("read", Robots.parse(_text(answer.body))), url


def _without(error: FetchError) -> RobotsFile:
    status = error.status if isinstance(error, BadStatus) else 0
    if 400 <= status < 500 and status != _BUSY:
        return RobotsFile("absent", ALLOWS_ALL, str(error))
    return RobotsFile("unavailable", ALLOWS_ALL, str(error), error)


def _pause(error: FetchError) -> float | None:
    return seconds_of(error.headers.get("retry-after")) if isinstance(error, BadStatus) else None


def _text(body: bytes) -> str:
    """Without the last line if the file is cut off: half a rule may forbid more than the whole."""
    whole = body if len(body) < MOST else body.rpartition(b"\n")[0]
    return whole.decode(errors="replace")
