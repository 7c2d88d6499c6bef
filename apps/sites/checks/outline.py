"""Checks of headings."""

from itertools import pairwise

from apps.sites.checks.counting import count, part, state_of
from apps.sites.checks.table import check
from apps.sites.models import Check, PageContent


def check_main_heading(pages: list[PageContent]) -> Check:
    without = [page.url for page in pages if _mains(page) == 0]
    several = [page.url for page in pages if _mains(page) > 1]
    if not without and not several:
        reason = f"All of {count(len(pages), 'page')} have one main heading (h1)."
        return check("main-heading", "pass", reason)
    return check(
        "main-heading",
        state_of(without, pages) if without else "warn",
        f"{part(without, pages)} have no main heading (h1), and {len(several)} have several.",
        "Give each page exactly one <h1> that says what the page is about.",
        [*without, *several],
    )


def check_heading_order(pages: list[PageContent]) -> Check:
    """A level is left out if a heading is more than one level below the one before it."""
    bad = [page.url for page in pages if _skips(page)]
    if not bad:
        return check("heading-order", "pass", "No page leaves out a level of headings.")
    return check(
        "heading-order",
        "warn",
        f"{part(bad, pages)} leave out a level of headings, such as an h4 after an h2.",
        "Use h2 below h1 and h3 below h2. Choose the size of headings in the style sheet.",
        bad,
    )


def _mains(page: PageContent) -> int:
    return sum(heading.level == 1 for heading in page.headings)


def _skips(page: PageContent) -> bool:
    levels = [heading.level for heading in page.headings]
    return any(after > before + 1 for before, after in pairwise(levels))
