"""The addresses that are known but not requested yet, breadth first."""

from collections import Counter, deque
from dataclasses import dataclass

from apps.sites.crawl.kinds import file_extension
from apps.sites.crawl.limits import CrawlLimits
from apps.sites.crawl.normalise import identity, normalise
from apps.sites.crawl.site import Site
from apps.sites.crawl.traps import is_endless, pattern_of
from apps.sites.models import CrawledPage, PageOutcome

# More addresses than these are not even remembered.
KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Visit:
    """An address to request. `hops` counts the redirects that led to it."""

    address: str
    depth: int
    hops: int = 0


class Frontier:
    """Addresses come out in the order of their depth, then in the order in which they came in.
    `skipped` has a page for each address that is not requested for a reason worth showing."""

    def __init__(self, site: Site, limits: CrawlLimits):
        self._site = site
        self._limits = limits
        self._known: set[str] = set()
        self._patterns: Counter[str] = Counter()
        self._queues: list[deque[Visit]] = [deque() for _ in range(limits.depth + 1)]
        self.skipped: list[CrawledPage] = []

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues)

    def know(self, address: str) -> None:
        """For an address that is requested without the frontier."""
        self._known.add(identity(address))

    def add(self, link: str, depth: int) -> None:
        address = normalise(link)
        if address is None or not self._site.contains(address) or depth > self._limits.depth:
            return
        key = identity(address)
        if key in self._known or len(self._known) >= KNOWN:
            return
        self._known.add(key)
        visit = Visit(self._site.adopt(address), depth)
        if self._is_worth_it(visit):
            self._queues[depth].append(visit)

    def redirect(self, visit: Visit, target: str) -> None:
        """The target takes the place of the visit, unless it is known."""
        key = identity(target)
        if key not in self._known:
            self._known.add(key)
            self._queues[visit.depth].appendleft(Visit(target, visit.depth, visit.hops + 1))

    def next(self) -> Visit | None:
        return next((queue.popleft() for queue in self._queues if queue), None)

    def skip(self, visit: Visit, outcome: PageOutcome, reason: str, code: str) -> None:
        if len(self.skipped) < self._limits.pages:
            page = CrawledPage(
                url=visit.address, outcome=outcome, depth=visit.depth, reason=reason, code=code
            )
            self.skipped.append(page)

    def _is_worth_it(self, visit: Visit) -> bool:
        if extension := file_extension(visit.address):
            self.skip(
                visit, "not_html", f"The address names a file: {extension}.", code="file_extension"
            )
            return False
        if is_endless(visit.address):
            self.skip(
                visit,
                "trap",
                "The path repeats itself or is very deep, so it may be endless.",
                code="endless_path",
            )
            return False
        return not self._is_one_too_many(visit)

    def _is_one_too_many(self, visit: Visit) -> bool:
        """Only the first address past the limit is shown: all others of its pattern are alike."""
        pattern = pattern_of(visit.address)
        if pattern is None:
            return False
        self._patterns[pattern] += 1
        count = self._patterns[pattern] - self._limits.similar
        if count == 1:
            self.skip(
                visit,
                "trap",
                f"More than {self._limits.similar} addresses look like {pattern[:200]}, as in an "
                "endless calendar. The others are not read.",
                code="similar_addresses",
            )
        return count > 0
