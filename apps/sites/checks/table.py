"""The checks: identifier, title, and weight from 1 to 10."""

from typing import NamedTuple

from apps.sites.models import Check, CheckState


class Rule(NamedTuple):
    title: str
    weight: int


CHECKS = {
    "ai-crawlers": Rule("AI crawlers may read the site", 10),
    "noindex": Rule("Pages may be indexed", 10),
    "text-without-scripts": Rule("Text is there without scripts", 9),
    "structured-data": Rule("Pages have structured data", 9),
    "business-type": Rule("Structured data names the business", 9),
    "business-facts": Rule("The site says who, what and where", 8),
    "business-complete": Rule("The data of the business is complete", 8),
    "json-ld-valid": Rule("JSON-LD is valid", 8),
    "titles-present": Rule("Every page has a title", 8),
    "broken-pages": Rule("All linked pages can be read", 7),
    "titles-unique": Rule("Titles differ", 6),
    "descriptions-present": Rule("Every page has a description", 6),
    "main-heading": Rule("Every page has one main heading", 5),
    "canonical": Rule("Canonical addresses are right", 5),
    "page-time": Rule("Pages answer quickly", 4),
    "language": Rule("Pages declare their language", 4),
    "alt-texts": Rule("Images have alternative texts", 4),
    "encoding": Rule("Characters are readable", 4),
    "titles-length": Rule("Titles have a good length", 3),
    "descriptions-unique": Rule("Descriptions differ", 3),
    "heading-order": Rule("Headings are in order", 3),
    "alternates": Rule("Language versions refer to each other", 3),
    "page-size": Rule("Pages are not too large", 3),
    "sitemap": Rule("The site has a sitemap", 3),
    "llms-txt": Rule("The site has an llms.txt", 3),
    "llms-txt-format": Rule("llms.txt is well-formed", 2),
    "descriptions-length": Rule("Descriptions have a good length", 2),
}
# Within one weight, what needs work comes first.
_STATES: tuple[CheckState, ...] = ("fail", "warn", "unknown", "pass")


def check(
    id: str, state: CheckState, reason: str, fix: str | None = None, pages: list[str] | None = None
) -> Check:
    rule = CHECKS[id]
    return Check(
        id=id,
        title=rule.title,
        state=state,
        weight=rule.weight,
        reason=reason,
        fix=fix,
        pages=pages or [],
    )


def in_order(checks: list[Check]) -> list[Check]:
    ids = list(CHECKS)
    return sorted(
        checks, key=lambda each: (-each.weight, _STATES.index(each.state), ids.index(each.id))
    )
