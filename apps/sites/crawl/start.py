"""Finds the start page. Only this page decides about the run: its errors are raised."""

from dataclasses import dataclass

from apps.sites.crawl.crawlers import AGENT
from apps.sites.crawl.errors import NotHtml
from apps.sites.crawl.kinds import is_html
from apps.sites.crawl.limits import CrawlLimits
from apps.sites.crawl.normalise import normalise
from apps.sites.crawl.robotsfile import RobotsFile, RobotsFiles
from apps.sites.crawl.visitor import HOPS, Answer, Visitor
from batchmill import BadUrl, FetchResponse, TooManyRedirects


@dataclass(frozen=True, slots=True)
class Start:
    """`passed` are the addresses that redirected to this one."""

    address: str
    answer: Answer
    robots: RobotsFile
    passed: tuple[str, ...]


async def find_start(visitor: Visitor, url: str, limits: CrawlLimits) -> Start:
    """Follows redirects to any public host, each after its own robots.txt."""
    files = RobotsFiles(visitor)
    passed: list[str] = []
    for _ in range(HOPS + 1):
        address = _normalised(url)
        robots = await files.of(address)
        robots.check(address)
        visitor.delay.seconds = min(robots.rules.delay(AGENT) or 0.0, limits.delay)
        answer = await visitor.request(url, accept=check_html)
        if isinstance(answer, Answer):
            return Start(address, answer, robots, tuple(passed))
        passed.append(address)
        url = answer.url
    raise TooManyRedirects("The address redirects too many times.")


def check_html(response: FetchResponse) -> None:
    if not is_html(response.content_type, response.media_type):
        raise NotHtml(response.media_type)


def _normalised(url: str) -> str:
    address = normalise(url)
    if address is None:
        raise BadUrl("This is not a valid URL. Check the spelling.")
    return address
