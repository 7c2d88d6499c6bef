"""Checks of addresses and languages: canonical, lang, hreflang."""

from urllib.parse import urlsplit

from apps.sites.checks.counting import count, part, state_of
from apps.sites.checks.table import check
from apps.sites.models import Check, Crawl, PageContent


def check_canonical(crawl: Crawl, pages: list[PageContent]) -> Check:
    absent = [page.url for page in pages if page.canonical is None]
    broken = {page.url for page in crawl.pages if page.outcome == "failed"}
    away = [
        page.url for page in pages if page.canonical and _host(page.canonical) != _host(page.url)
    ]
    lost = [page.url for page in pages if page.canonical in broken]
    wrong = list(dict.fromkeys([*away, *lost]))
    if wrong:
        return check(
            "canonical",
            "fail",
            f"{part(wrong, pages)} name a canonical address that is on another host ({len(away)}) "
            f"or cannot be read ({len(lost)}). Crawlers may drop these pages.",
            "Let the canonical address of each page be its own address on this site.",
            wrong,
        )
    if absent:
        return check(
            "canonical",
            "warn",
            f"{part(absent, pages)} name no canonical address.",
            'Add <link rel="canonical" href="…"> with the preferred address to each page.',
            absent,
        )
    reason = f"All of {count(len(pages), 'page')} name a canonical address on this site."
    return check("canonical", "pass", reason)


def check_language(pages: list[PageContent]) -> Check:
    bad = [page.url for page in pages if page.language is None]
    if not bad:
        languages = sorted({page.language for page in pages if page.language})
        return check("language", "pass", f"All pages declare a language: {', '.join(languages)}.")
    return check(
        "language",
        state_of(bad, pages),
        f"{part(bad, pages)} do not declare their language.",
        'Add the language to the html element, such as <html lang="en">.',
        bad,
    )


def check_alternates(pages: list[PageContent]) -> Check:
    versioned = [page for page in pages if page.alternates]
    if not versioned:
        languages = {_main(page.language) for page in pages if page.language}
        if len(languages) < 2:
            return check("alternates", "pass", "The site has one language.")
        return check(
            "alternates",
            "warn",
            f"The pages have {len(languages)} languages, but no hreflang links.",
            'Link the versions of each page with <link rel="alternate" hreflang="…">.',
            [page.url for page in pages],
        )
    bad = [page.url for page in versioned if _is_inconsistent(page, pages)]
    if not bad:
        reason = f"{part(versioned, pages)} have hreflang links that agree."
        return check("alternates", "pass", reason)
    return check(
        "alternates",
        "warn",
        f"{part(bad, versioned)} have hreflang links that do not agree: the page itself is absent, "
        "its language is another one, or the other version does not link back.",
        "List all versions on each of them, the page itself included, with the same addresses.",
        bad,
    )


def _is_inconsistent(page: PageContent, pages: list[PageContent]) -> bool:
    own = {_same(page.url), _same(page.canonical or page.url)}
    codes = [code for code, url in page.alternates.items() if _same(url) in own]
    by_url = {_same(each.url): each for each in pages}
    others = [by_url[_same(url)] for url in page.alternates.values() if _same(url) in by_url]
    links_back = all(own & {_same(url) for url in other.alternates.values()} for other in others)
    languages = {_main(code) for code in codes if code != "x-default"}
    agrees = not page.language or not languages or _main(page.language) in languages
    return not codes or not links_back or not agrees


def _main(language: str) -> str:
    return language.replace("_", "-").partition("-")[0].lower()


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


def _same(url: str) -> str:
    return url.rstrip("/")
