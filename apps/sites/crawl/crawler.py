"""Crawls one site: the start page, then its links and its sitemap, breadth first.

    start → robots.txt → start page → llms.txt, sitemaps → pages → settle
                             ▲                               │
                             └── only its errors are raised  └── errors are recorded with the page

Answers are used in the order of their requests, although a few requests run at once. So the same
site gives the same crawl.
"""

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable

from apps.sites.crawl.allowance import AllowanceSpent, Stop
from apps.sites.crawl.discovery import Sitemaps, read_llms_txt
from apps.sites.crawl.duplicates import settle
from apps.sites.crawl.errors import RobotsDisallowed
from apps.sites.crawl.frontier import Frontier, Visit
from apps.sites.crawl.limits import CrawlLimits
from apps.sites.crawl.normalise import identity, normalise
from apps.sites.crawl.pages import Pages, Read
from apps.sites.crawl.site import Site
from apps.sites.crawl.start import Start, check_html, find_start
from apps.sites.crawl.visitor import HOPS, Answer, Failed, Moved, Visitor
from apps.sites.models import Crawl, TextFile
from batchmill import Fetcher, FetchError, ResponseTooLarge, ResponseTooSlow, TooManyRedirects

Report = Callable[[int, int], Awaitable[None] | None]
Result = Answer | Moved | Failed


async def crawl(
    start: str,
    fetcher: Fetcher,
    *,
    read: Read,
    limits: CrawlLimits | None = None,
    caller: str | None = None,
    report: Report | None = None,
) -> Crawl:
    """Raises if the start page cannot be read. `read(url, body, content_type)` turns HTML into
    content. `report(done, known)` is called after each page."""
    limits = limits or CrawlLimits()
    async with fetcher.session(caller=caller) as session:
        await session.check(start)
        visitor = Visitor(session, limits)
        try:
            found = await find_start(visitor, start, limits)
        except AllowanceSpent as error:
            raise _as_fetch_error(error) from error
        return await Crawler(visitor, found, read, limits, report).run()


def _as_fetch_error(spent: AllowanceSpent) -> FetchError:
    if spent.limit == "bytes":
        return ResponseTooLarge("The start page is larger than the limit of bytes of a crawl.")
    return ResponseTooSlow("The start page takes longer than the time of a crawl.")


class Crawler:
    def __init__(
        self, visitor: Visitor, start: Start, read: Read, limits: CrawlLimits, report: Report | None
    ):
        self._visitor = visitor
        self._start = start
        self._limits = limits
        self._report = report
        self._site = Site.of(start.address)
        self._frontier = Frontier(self._site, limits)
        self._pages = Pages(self._site, self._frontier, read, limits)
        self._sitemaps = Sitemaps(visitor, self._may, limits)
        self._llms_txt: TextFile | None = None
        self._requested = 1
        self._spent: Stop | None = None
        self._in_flight: deque[tuple[Visit, asyncio.Task[Result]]] = deque()

    async def run(self) -> Crawl:
        for address in (*self._start.passed, self._start.address):
            self._frontier.know(address)
        self._pages.add_start(Visit(self._start.address, 0), self._start.answer)
        try:
            await self._discover()
            await self._read_pages()
        except AllowanceSpent as error:
            self._spent = error.limit
        return Crawl(
            site=self._site.origin,
            pages=settle([*self._pages.records, *self._frontier.skipped]),
            robots=self._start.robots.report(self._start.address),
            sitemap=self._sitemaps.url,
            llms_txt=self._llms_txt,
            stopped_by=self._stopped_by(),
            seconds=self._visitor.allowance.seconds,
        )

    async def _discover(self) -> None:
        self._llms_txt = await read_llms_txt(self._visitor, self._site.at("/llms.txt"), self._may)
        await self._sitemaps.read(self._known_sitemaps())
        for address in self._sitemaps.pages:
            self._frontier.add(address, depth=1)

    def _known_sitemaps(self) -> list[str]:
        return self._start.robots.rules.sitemaps or [self._site.at("/sitemap.xml")]

    def _may(self, url: str) -> bool:
        address = normalise(url)
        is_ours = address is not None and self._site.contains(address)
        return is_ours and self._start.robots.allows(url)

    def _stopped_by(self) -> Stop | None:
        if self._spent:
            return self._spent
        spent = self._visitor.allowance.spent
        if len(self._frontier):
            return spent or "pages"
        # The page that used the last bytes is incomplete.
        return "bytes" if spent == "bytes" else None

    async def _read_pages(self) -> None:
        try:
            while True:
                await self._tell()
                self._launch()
                if not self._in_flight:
                    return
                visit, task = self._in_flight.popleft()
                try:
                    self._pages.add(visit, await task)
                except AllowanceSpent as error:
                    # The other requests are under way, and are still worth reading.
                    self._spent = error.limit
        finally:
            await self._abandon()

    def _launch(self) -> None:
        parallel = 1 if self._visitor.delay.seconds else self._limits.parallel
        while len(self._in_flight) < parallel and self._may_go_on():
            visit = self._frontier.next()
            if visit is None:
                return
            if not self._start.robots.allows(visit.address):
                self._frontier.skip(
                    visit, "disallowed", "robots.txt forbids it.", "robots_disallowed"
                )
                continue
            self._requested += 1
            self._in_flight.append((visit, asyncio.create_task(self._visit(visit))))

    def _may_go_on(self) -> bool:
        spent = self._spent or self._visitor.allowance.spent
        return not spent and self._requested < self._limits.pages

    async def _visit(self, visit: Visit) -> Result:
        """Follows redirects only to other spellings of the same address."""
        result = await self._visitor.attempt(visit.address, check_html)
        for _ in range(HOPS):
            if not isinstance(result, Moved) or not self._is_spelling(result.url, visit):
                return result
            if not self._start.robots.allows(result.url):
                return Failed(RobotsDisallowed(self._site.host), result.seconds)
            result = await self._visitor.attempt(result.url, check_html)
        if isinstance(result, Moved):
            return Failed(TooManyRedirects("The address redirects too many times."), result.seconds)
        return result

    def _is_spelling(self, url: str, visit: Visit) -> bool:
        address = normalise(url)
        return address is not None and identity(address) == identity(visit.address)

    async def _abandon(self) -> None:
        tasks = [task for _, task in self._in_flight]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self) -> None:
        if self._report is None:
            return
        known = self._requested + len(self._frontier)
        told = self._report(len(self._pages.records), min(known, self._limits.pages))
        if inspect.isawaitable(told):
            await told
