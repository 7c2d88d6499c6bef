"""Records what came of each request, and adds the links of pages to the frontier."""

import re
from collections.abc import Callable, Iterable

from apps.sites.crawl.crawlers import AGENT
from apps.sites.crawl.duplicates import canonical_of, digest_of
from apps.sites.crawl.errors import NotHtml, PageUnreadable, RobotsDisallowed
from apps.sites.crawl.frontier import Frontier, Visit
from apps.sites.crawl.limits import CrawlLimits
from apps.sites.crawl.normalise import normalise
from apps.sites.crawl.site import Site
from apps.sites.crawl.visitor import HOPS, Answer, Failed, Moved
from apps.sites.models import CrawledPage, PageContent, PageOutcome
from batchmill import BadStatus, ResponseTooLarge, ResponseTooSlow

# A page with more links is a list that nobody reads to its end.
LINKS = 2_000
_OUTCOMES: dict[type[Exception], PageOutcome] = {
    NotHtml: "not_html",
    ResponseTooLarge: "too_large",
    ResponseTooSlow: "too_slow",
    RobotsDisallowed: "disallowed",
}
_AGENT_OF_TAG = re.compile(r"\s*([\w-]+)\s*:\s*(?!//)(.*)", re.DOTALL)
_VALUED = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")

Read = Callable[[str, bytes, str | None], PageContent]


class Pages:
    def __init__(self, site: Site, frontier: Frontier, read: Read, limits: CrawlLimits):
        self._site = site
        self._frontier = frontier
        self._read = read
        self._limits = limits
        self._digests: dict[bytes, str] = {}
        self.records: list[CrawledPage] = []

    def add_start(self, visit: Visit, answer: Answer) -> None:
        """Raises if the page cannot be read."""
        self._add_page(visit, answer, self._content(visit, answer))

    def add(self, visit: Visit, result: Answer | Moved | Failed) -> None:
        match result:
            case Moved():
                self._add_redirect(visit, result)
            case Failed():
                self._add_failure(visit, result)
            case Answer():
                try:
                    content = self._content(visit, result)
                except PageUnreadable as error:
                    self._add_failure(visit, Failed(error, result.seconds))
                else:
                    self._add_page(visit, result, content)

    def _content(self, visit: Visit, answer: Answer) -> PageContent:
        try:
            content = self._read(visit.address, answer.body, answer.content_type)
        except Exception as error:
            # Whatever hostile HTML does to a parser, it is about this page only.
            raise PageUnreadable from error
        tags = directives(answer.robots_tags)
        return content.model_copy(
            update={
                "is_indexed": content.is_indexed and not tags & {"noindex", "none"},
                "follows_links": content.follows_links and not tags & {"nofollow", "none"},
            }
        )

    def _add_page(self, visit: Visit, answer: Answer, content: PageContent) -> None:
        first = self._digests.setdefault(digest_of(content, answer.body), visit.address)
        page = CrawledPage(
            url=visit.address,
            outcome="read" if first == visit.address else "duplicate",
            depth=visit.depth,
            status=answer.status,
            bytes=len(answer.body),
            seconds=answer.seconds,
            reason=None if first == visit.address else f"The page has the same text as {first}.",
            duplicate_of=None if first == visit.address else first,
            content=content if first == visit.address else None,
        )
        self.records.append(page)
        if page.outcome == "read":
            self._add_links(visit, page, content)

    def _add_links(self, visit: Visit, page: CrawledPage, content: PageContent) -> None:
        if canonical := canonical_of(page):
            self._frontier.add(canonical, visit.depth)
        if content.follows_links:
            for link in content.links[:LINKS]:
                self._frontier.add(link, visit.depth + 1)

    def _add_redirect(self, visit: Visit, moved: Moved) -> None:
        target = normalise(moved.url)
        if target is None or visit.hops >= HOPS:
            self._record(
                visit, moved, "failed", "It redirects too many times.", "too_many_redirects"
            )
        elif not self._site.contains(target):
            self._record(visit, moved, "off_site", f"The address redirects to {target}.", None)
        else:
            target = self._site.adopt(target)
            self._record(
                visit, moved, "duplicate", f"The address redirects to {target}.", None, target
            )
            self._frontier.redirect(visit, target)

    def _record(
        self,
        visit: Visit,
        moved: Moved,
        outcome: PageOutcome,
        reason: str,
        code: str | None,
        duplicate_of: str | None = None,
    ) -> None:
        page = CrawledPage(
            url=visit.address,
            outcome=outcome,
            depth=visit.depth,
            status=moved.status,
            seconds=moved.seconds,
            reason=reason,
            code=code,
            duplicate_of=duplicate_of,
        )
        self.records.append(page)

    def _add_failure(self, visit: Visit, failed: Failed) -> None:
        error = failed.error
        page = CrawledPage(
            url=visit.address,
            outcome=_OUTCOMES.get(type(error), "failed"),
            depth=visit.depth,
            status=error.status if isinstance(error, BadStatus) else None,
            seconds=failed.seconds,
            reason=str(error),
            code=error.error_code,
        )
        self.records.append(page)


def directives(tags: Iterable[str]) -> set[str]:
    """The directives of X-Robots-Tag headers that apply to all agents, or to ours."""
    found: set[str] = set()
    for tag in tags:
        applies = True
        for part in tag.split(","):
            named = _AGENT_OF_TAG.match(part)
            if named and named[1].lower() not in _VALUED:
                applies, part = named[1].lower() == AGENT, named[2]
            if applies:
                found.add(part.strip().lower())
    return found
