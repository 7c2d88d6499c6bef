"""Addresses and links in the form in which people read them."""

import re

from apps.resumes.document import Location

# Where the postal code stands behind the region: "Mountain View, CA 94043".
CODE_LAST = frozenset({"AU", "BR", "CA", "CN", "GB", "IE", "IN", "NZ", "SG", "US", "ZA"})
SCHEME = re.compile(r"(?:https?://(?:www\.)?|mailto:)", re.IGNORECASE)


def address_of(location: Location) -> str | None:
    """On one line. What the address itself already says is not repeated."""
    address = ", ".join(line.strip(" ,") for line in (location.address or "").split("\n"))
    city, region, code = (
        None if part and part.casefold() in address.casefold() else part
        for part in (location.city, location.region, location.postal_code)
    )
    country = location.country_code.upper() if location.country_code else None
    if country is None or country in CODE_LAST:
        town = [city, joined(" ", region, code)]
    else:
        town = [joined(" ", code, city), region]
    return joined(", ", address, *town, country)


def joined(separator: str, *parts: str | None) -> str | None:
    return separator.join(part for part in parts if part) or None


def short_url(url: str) -> str:
    """Without what readers do not need: the scheme, `www.` and the last slash."""
    return SCHEME.sub("", url, count=1).removesuffix("/")
