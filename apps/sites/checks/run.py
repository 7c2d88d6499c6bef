"""Runs all checks."""

from apps.sites.checks.crawlers import check_ai_crawlers, check_noindex, check_sitemap
from apps.sites.checks.delivery import check_broken_pages, check_page_size, check_page_time
from apps.sites.checks.llms import check_llms, check_llms_format
from apps.sites.checks.markup import (
    check_business_complete,
    check_business_type,
    check_facts,
    check_json_ld,
    check_structured_data,
)
from apps.sites.checks.outline import check_heading_order, check_main_heading
from apps.sites.checks.readable import check_alt_texts, check_encoding, check_text
from apps.sites.checks.table import in_order
from apps.sites.checks.versions import check_alternates, check_canonical, check_language
from apps.sites.checks.wording import (
    check_descriptions_length,
    check_descriptions_present,
    check_descriptions_unique,
    check_titles_length,
    check_titles_present,
    check_titles_unique,
)
from apps.sites.facts.pages import contents_of
from apps.sites.models import Check, Crawl, Facts, PageContent

_OF_PAGES = (
    check_structured_data, check_json_ld, check_noindex, check_titles_present, check_titles_unique,
    check_titles_length, check_descriptions_present, check_descriptions_unique,
    check_descriptions_length, check_main_heading, check_heading_order, check_text, check_encoding,
    check_alt_texts, check_language, check_alternates,
)  # fmt: skip
_OF_CRAWL = (
    check_ai_crawlers,
    check_sitemap,
    check_llms,
    check_llms_format,
    check_business_complete,
)
_OF_DELIVERY = (check_broken_pages, check_page_size, check_page_time)


def checks_of(crawl: Crawl, facts: Facts) -> list[Check]:
    """One of each check in the table, the most important first. Without a page that was read, only
    those that need none."""
    checks = [each(crawl) for each in _OF_CRAWL]
    pages = contents_of(crawl)
    if pages:
        checks += _of_pages(crawl, facts, pages)
    return in_order(checks)


def _of_pages(crawl: Crawl, facts: Facts, pages: list[PageContent]) -> list[Check]:
    start, *others = crawl.pages
    crawled = [start, *sorted(others, key=lambda page: (page.depth, page.url))]
    return [
        *(each(pages) for each in _OF_PAGES),
        *(each(crawled) for each in _OF_DELIVERY),
        check_business_type(crawl, pages),
        check_canonical(crawl, pages),
        check_facts(facts, pages),
    ]
