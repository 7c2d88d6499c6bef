"""Addresses on a page → absolute ones."""

import re
from urllib.parse import urldefrag, urljoin, urlsplit

from apps.sites.page.tree import Tree, tidy

MOST_LINKS = 5_000
MOST_CONTACTS = 100
LONGEST = 2_048

_REMOVED = re.compile(r"[\t\r\n\x00]+")
_CONTACT = re.compile(r"\s*(?:tel|mailto):", re.IGNORECASE)


def absolute(base: str, address: str | None) -> str | None:
    """None unless it is an address of the web. The fragment is left out."""
    if address is None or len(address) > LONGEST:
        return None
    try:
        url = urldefrag(urljoin(base, _with_slashes(_REMOVED.sub("", address.strip())))).url
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
        # Reading the port refuses those that are not numbers.
        _ = parts.port
    except ValueError:
        return None
    return url.replace(" ", "%20") if is_web and len(url) <= LONGEST else None


def base_of(tree: Tree, url: str) -> str:
    """Only the first `<base>` with an address counts."""
    addresses = [
        element.get("href") for element in tree.all("base") if "href" in element.attributes
    ]
    return (absolute(url, addresses[0]) if addresses else None) or url


def links_of(tree: Tree, base: str, problems: list[str]) -> list[str]:
    """Each address once. Links with rel=nofollow are left out, as their page asks."""
    seen: set[str] = set()
    found: dict[str, None] = {}
    for element in tree.all("a", "area"):
        address = element.get("href")
        if address is None or address in seen or "nofollow" in element.words("rel"):
            continue
        if len(seen) >= MOST_LINKS:
            problems.append(f"The page has more than {MOST_LINKS:,} links. The rest was not read.")
            break
        seen.add(address)
        if url := absolute(base, address):
            found[url] = None
    return list(found)


def contacts_of(tree: Tree) -> list[str]:
    """The `tel:` and `mailto:` addresses of links, to the letter."""
    found: dict[str, None] = {}
    for element in tree.all("a", "area"):
        address = element.get("href") or ""
        if len(address) <= LONGEST and _CONTACT.match(address) and len(found) < MOST_CONTACTS:
            found[tidy(address)] = None
    return list(found)


def _with_slashes(address: str) -> str:
    """Browsers read a backslash before the query as a slash."""
    path, mark, query = address.partition("?")
    return path.replace("\\", "/") + mark + query
