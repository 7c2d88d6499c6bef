"""Checks of titles and descriptions."""

from collections import defaultdict

from apps.sites.checks.counting import count, part, state_of
from apps.sites.checks.table import check
from apps.sites.models import Check, PageContent

# Characters. Shorter ones say little, and search results cut longer ones.
SHORTEST_TITLE, LONGEST_TITLE = 10, 65
SHORTEST_DESCRIPTION, LONGEST_DESCRIPTION = 50, 160


def check_titles_present(pages: list[PageContent]) -> Check:
    bad = [page.url for page in pages if not page.title]
    if not bad:
        return check("titles-present", "pass", f"All of {count(len(pages), 'page')} have a title.")
    return check(
        "titles-present",
        "fail",
        f"{part(bad, pages)} have no title.",
        "Give each page a <title> that names its subject and your business.",
        bad,
    )


def check_titles_unique(pages: list[PageContent]) -> Check:
    bad = _repeated({page.url: page.title for page in pages})
    if not bad:
        return check("titles-unique", "pass", "No two pages have the same title.")
    return check(
        "titles-unique",
        state_of(bad, pages),
        f"{part(bad, pages)} share their title with another page.",
        "Give each page a title of its own, such as `Opening hours – Your business`.",
        bad,
    )


def check_titles_length(pages: list[PageContent]) -> Check:
    lengths = {page.url: len(page.title) for page in pages if page.title}
    return _length("titles-length", "title", lengths, SHORTEST_TITLE, LONGEST_TITLE)


def check_descriptions_present(pages: list[PageContent]) -> Check:
    bad = [page.url for page in pages if not page.description]
    if not bad:
        reason = f"All of {count(len(pages), 'page')} have a meta description."
        return check("descriptions-present", "pass", reason)
    return check(
        "descriptions-present",
        state_of(bad, pages),
        f"{part(bad, pages)} have no meta description.",
        'Add a <meta name="description"> to each page: one or two sentences about what it offers.',
        bad,
    )


def check_descriptions_unique(pages: list[PageContent]) -> Check:
    bad = _repeated({page.url: page.description for page in pages})
    if not bad:
        return check("descriptions-unique", "pass", "No two pages have the same description.")
    return check(
        "descriptions-unique",
        "warn",
        f"{part(bad, pages)} share their description with another page.",
        "Write a description of its own for each page.",
        bad,
    )


def check_descriptions_length(pages: list[PageContent]) -> Check:
    lengths = {page.url: len(page.description) for page in pages if page.description}
    return _length(
        "descriptions-length", "description", lengths, SHORTEST_DESCRIPTION, LONGEST_DESCRIPTION
    )


def _length(id: str, noun: str, lengths: dict[str, int], shortest: int, longest: int) -> Check:
    if not lengths:
        return check(id, "unknown", f"No page has a {noun}.", f"Add a {noun} to each page first.")
    bad = [url for url, length in lengths.items() if not shortest <= length <= longest]
    if not bad:
        size = f"{min(lengths.values())} to {max(lengths.values())} characters"
        return check(id, "pass", f"Each {noun} has {size}.")
    short = sum(length < shortest for length in lengths.values())
    return check(
        id,
        "warn",
        f"{part(bad, lengths, noun)} have a poor length: {short} shorter than {shortest} "
        f"characters, {len(bad) - short} longer than {longest}.",
        f"Write each {noun} with {shortest} to {longest} characters.",
        bad,
    )


def _repeated(texts: dict[str, str | None]) -> list[str]:
    """The pages whose text another page has too."""
    pages: dict[str, list[str]] = defaultdict(list)
    for url, text in texts.items():
        if text:
            pages[text.casefold()].append(url)
    return [url for urls in pages.values() if len(urls) > 1 for url in urls]
