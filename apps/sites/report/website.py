"""A crawl → what the report says about the website. Computes only."""

from apps.sites.checks import checks_of
from apps.sites.facts import facts_of
from apps.sites.models import Crawl, CrawledPage
from apps.sites.report.models import PageLine, Website


def website_of(crawl: Crawl) -> Website:
    facts = facts_of(crawl)
    return Website(
        site=crawl.site,
        facts=facts,
        checks=checks_of(crawl, facts),
        pages=[line_of(page) for page in crawl.pages],
        robots=crawl.robots,
        sitemap=crawl.sitemap,
        has_llms_txt=crawl.llms_txt is not None,
        stopped_by=crawl.stopped_by,
        seconds=round(crawl.seconds, 3),
    )


def line_of(page: CrawledPage) -> PageLine:
    content = page.content
    return PageLine(
        **page.model_dump(
            include={
                *("url", "outcome", "status", "bytes", "seconds", "reason", "code", "duplicate_of")
            }
        ),
        title=content.title if content else None,
        words=len(content.text.split()) if content else 0,
    )
