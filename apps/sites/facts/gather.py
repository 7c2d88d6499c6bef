"""All facts of a site.

Structured data comes first, then OpenGraph, meta, titles, headings and text. Within each, the start
page comes first. Unknown is None: a value is only there if a page states it.
"""

from apps.sites.facts.about import description_of, keywords_of_business
from apps.sites.facts.business import business_of
from apps.sites.facts.contacts import emails_of, phones_of
from apps.sites.facts.hours import hours_of
from apps.sites.facts.industries import industry_of
from apps.sites.facts.names import name_of
from apps.sites.facts.pages import contents_of
from apps.sites.facts.places import location_of
from apps.sites.models import Contact, Crawl, Facts


def facts_of(crawl: Crawl) -> Facts:
    pages = contents_of(crawl)
    if not pages:
        return Facts()
    business = business_of(crawl)
    name = name_of(business, pages, crawl.site)
    place = location_of(business, pages)
    return Facts(
        business_name=name,
        industry=industry_of(business, pages, name.value if name else None),
        location=place.location,
        description=description_of(business, pages),
        keywords=keywords_of_business(business, pages),
        opening_hours=hours_of(business, pages, has_branches=place.has_branches),
        contact=Contact(
            emails=emails_of(business, pages),
            phones=phones_of(business, pages),
            address=place.address,
        ),
    )
