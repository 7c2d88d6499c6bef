"""Checks of structured data."""

from apps.sites.checks.counting import count, part
from apps.sites.checks.table import check
from apps.sites.facts import Source, business_of, texts_of, things_of
from apps.sites.facts.business_types import BROAD, NARROW
from apps.sites.models import Check, Crawl, Facts, PageContent
from apps.sites.page import JSON_LD

# What a description of a business needs, and where it can be.
_NEEDED = {
    "name": ("name", "legalName"),
    "url": ("url",),
    "telephone": ("telephone",),
    "address": ("address", "location"),
    "description": ("description",),
}
# What only a business with an address for customers needs.
_LOCAL = {"openingHours": ("openingHours", "openingHoursSpecification")}
_LOCAL_TYPES = (BROAD | NARROW | {"LocalBusiness", "Store"}) - {"OnlineStore", "NGO", "Project"}


def check_structured_data(pages: list[PageContent]) -> Check:
    described = [page for page in pages if _kinds(page)]
    syntaxes = sorted({kind for page in pages for kind in _kinds(page)})
    if described:
        reason = f"{part(described, pages)} have structured data ({', '.join(syntaxes)})."
        return check("structured-data", "pass", reason)
    has_opengraph = any(page.structured for page in pages)
    extra = (
        " They only have OpenGraph, which does not describe a business." if has_opengraph else ""
    )
    return check(
        "structured-data",
        "fail",
        f"None of {count(len(pages), 'page')} has JSON-LD, microdata or RDFa.{extra}",
        "Add a JSON-LD block to the start page that describes your business with schema.org types.",
        [page.url for page in pages[:1]],
    )


def check_business_type(crawl: Crawl, pages: list[PageContent]) -> Check:
    business = business_of(crawl)
    if business:
        types = sorted({name for source in business for name in source.types})
        where = sorted({source.page for source in business})
        name = business[0].name or "The business"
        reason = f"{name} is described as {', '.join(types)}."
        if not set(types) & (NARROW | BROAD):
            fix = "Add a narrower type of schema.org, such as Bakery or Dentist."
            return check(
                "business-type", "warn", f"{reason} No type says what it does.", fix, where
            )
        return check("business-type", "pass", reason, pages=where)
    types = sorted({name for page in pages for item in page.structured for name in item.types})
    found = f"The types are {', '.join(types[:10])}." if types else "There is no structured data."
    return check(
        "business-type",
        "fail",
        f"No structured data describes the business of this site. {found}",
        "Describe your business on the start page with a type of schema.org, such as LocalBusiness "
        "or one of its narrower types.",
        [page.url for page in pages[:1]],
    )


def check_business_complete(crawl: Crawl) -> Check:
    business = business_of(crawl)
    if not business:
        return check(
            "business-complete",
            "unknown",
            "No structured data describes the business of this site.",
            "Describe your business in structured data first.",
        )
    needed = _NEEDED | (_LOCAL if _is_local(business) else {})
    absent = [name for name, names in needed.items() if not _has(business, names)]
    where = sorted({source.page for source in business})
    if not absent:
        return check(
            "business-complete", "pass", f"All of {', '.join(needed)} are given.", pages=where
        )
    return check(
        "business-complete",
        "fail" if "name" in absent or 2 * len(absent) >= len(needed) else "warn",
        f"{len(absent)} of {len(needed)} properties are absent: {', '.join(absent)}.",
        f"Add {', '.join(absent)} to the structured data of your business.",
        where,
    )


def check_json_ld(pages: list[PageContent]) -> Check:
    faults = {
        page.url: [problem for problem in page.problems if problem.startswith(JSON_LD)]
        for page in pages
    }
    bad = [url for url, problems in faults.items() if problems]
    has_any = any(item.syntax == "json-ld" for page in pages for item in page.structured)
    if bad:
        return check(
            "json-ld-valid",
            "fail",
            f"{part(bad, pages)} have invalid JSON-LD. {faults[bad[0]][0]}",
            "Correct the JSON: no comments, no trailing commas, no line breaks inside texts. Then "
            "check it with validator.schema.org.",
            bad,
        )
    if not has_any:
        return check(
            "json-ld-valid",
            "unknown",
            f"None of {count(len(pages), 'page')} has JSON-LD.",
            "Add a JSON-LD block to the start page.",
        )
    return check("json-ld-valid", "pass", "All JSON-LD blocks are valid JSON.")


def check_facts(facts: Facts, pages: list[PageContent]) -> Check:
    known = {
        "its name": facts.business_name,
        "what it does": facts.industry,
        "where it is": facts.location,
        "how to reach it": facts.contact.phones or facts.contact.emails or facts.contact.address,
    }
    absent = [name for name, fact in known.items() if not fact]
    if not absent:
        return check("business-facts", "pass", f"The site states {', '.join(known)}.")
    return check(
        "business-facts",
        "fail" if facts.business_name is None or len(absent) > 2 else "warn",
        f"{len(absent)} of {len(known)} facts are not stated clearly: {', '.join(absent)}.",
        f"State {', '.join(absent)} in the text of the start page and in structured data.",
        [page.url for page in pages[:1]],
    )


def _kinds(page: PageContent) -> set[str]:
    return {item.syntax for item in page.structured if item.syntax != "opengraph"}


def _is_local(business: list[Source]) -> bool:
    return any(not _LOCAL_TYPES.isdisjoint(source.types) for source in business)


def _has(business: list[Source], names: tuple[str, ...]) -> bool:
    """A contact point can have the telephone number too."""
    return any(
        texts_of(thing, name) or things_of(thing, name)
        for source in business
        for thing in (source.thing, *things_of(source.thing, "contactPoint"))
        for name in names
    )
