"""What one crawl may use."""

from dataclasses import dataclass, fields

from batchmill import InvalidInput

MIB = 1 << 20
MAY_BE_ZERO = ("depth", "sitemaps", "delay")


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlLimits:
    """`pages` limits the addresses that are requested, whatever comes of them, and `depth` the
    links from the start page. `page_bytes` and `bytes` limit decompressed bodies, of a page and of
    everything. `page_seconds` limits the time for one answer, and `seconds` that for everything.

    At most `parallel` requests run at once, or one if robots.txt asks for a delay. A crawl delay is
    honoured up to `delay` seconds. `similar` limits the addresses that differ only in numbers.
    `sitemaps` limits the sitemap files, and `sitemap_bytes` how much of each is read."""

    pages: int = 30
    depth: int = 4
    page_bytes: int = 3 * MIB
    bytes: int = 30 * MIB
    page_seconds: float = 15.0
    seconds: float = 120.0
    parallel: int = 3
    delay: float = 10.0
    similar: int = 12
    sitemaps: int = 5
    sitemap_bytes: int = 2 * MIB

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in MAY_BE_ZERO else 1e-9
            if not value >= least:
                raise InvalidInput(
                    f"The limit {field.name} of a crawl must be greater than "
                    f"{'or equal to ' if least == 0 else ''}0, not {value!r}."
                )
