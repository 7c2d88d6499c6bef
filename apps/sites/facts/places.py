"""Where the business is: its address, and the place as people name it.

A business with branches has several addresses. Then no address and no opening hours are known,
because none of them is that of the business. The place is known if all branches have the same.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from apps.sites.facts.business import Source
from apps.sites.facts.pages import own_words
from apps.sites.facts.postal import addresses_in, places_in
from apps.sites.facts.things import Thing, plain, texts_of, values_of
from apps.sites.models import Fact, PageContent

_PARTS = ("streetAddress", "postOfficeBoxNumber", "addressLocality", "addressRegion", "postalCode")
_OPENGRAPH = {
    "streetAddress": ("business:contact_data:street_address", "og:street-address"),
    "addressLocality": ("business:contact_data:locality", "og:locality"),
    "addressRegion": ("business:contact_data:region", "og:region"),
    "postalCode": ("business:contact_data:postal_code", "og:postal-code"),
    "addressCountry": ("business:contact_data:country_name", "og:country-name"),
}


class Place(NamedTuple):
    """`key` is the same for two spellings of one address."""

    key: tuple[str, ...]
    is_start: bool
    address: Fact | None
    location: Fact | None


class Location(NamedTuple):
    address: Fact | None = None
    location: Fact | None = None
    has_branches: bool = False


def location_of(business: list[Source], pages: list[PageContent]) -> Location:
    described = [place for source in business for place in _described(source)]
    for places in (described, _opengraph(pages), _written(pages)):
        if places:
            return _agreed(places)
    for page in own_words(pages):
        for place, words in places_in(page.text):
            return Location(location=Fact(value=place, page=page.url, words=words, method="text"))
    return Location()


def _agreed(places: Sequence[Place]) -> Location:
    """The start page decides, if it has an address."""
    places = [place for place in places if place.is_start] or places
    has_branches = len({place.key for place in places}) > 1
    locations = [place.location for place in places if place.location]
    is_one_place = len({fact.value.casefold() for fact in locations}) == 1
    addresses = [place.address for place in places if place.address]
    return Location(
        address=addresses[0] if addresses and not has_branches else None,
        location=locations[0] if is_one_place else None,
        has_branches=has_branches,
    )


def _described(source: Source) -> list[Place]:
    values = values_of(source.thing, "address")
    if not values:
        values = [
            address
            for place in values_of(source.thing, "location")
            if isinstance(place, dict)
            for address in values_of(place, "address")
        ]
    return [place for value in values if (place := _place(value, source))]


def _place(value: object, source: Source) -> Place | None:
    if isinstance(value, dict):
        return _from_parts(value, source)
    if not isinstance(value, str) or len(value) > 300:
        return None
    fact = source.fact(plain(value), value.strip())
    towns = addresses_in(plain(value))
    location = source.fact(towns[0].place, towns[0].place_words) if len(towns) == 1 else None
    return Place((_squeezed(value),), source.is_start, fact, location)


def _from_parts(address: Thing, source: Source) -> Place | None:
    parts = {name: next(iter(texts_of(address, name)), "") for name in (*_PARTS, "addressCountry")}
    if not any(parts.values()):
        return None
    town, region, country = (
        parts["addressLocality"],
        parts["addressRegion"],
        parts["addressCountry"],
    )
    location = _fact(source, [town, region or country]) if town else None
    has_street = bool(parts["streetAddress"] or parts["postOfficeBoxNumber"])
    number = re.search(r"\d+", parts["streetAddress"])
    key = (_squeezed(town), _squeezed(parts["postalCode"]), number[0] if number else "")
    return Place(
        key=key,
        is_start=source.is_start,
        address=_fact(source, list(parts.values())) if has_street else None,
        location=location,
    )


def _fact(source: Source, parts: list[str]) -> Fact:
    """One line of words for each value of the data."""
    given = [part for part in parts if part]
    return source.fact(", ".join(map(plain, given)), "\n".join(given))


def _opengraph(pages: list[PageContent]) -> list[Place]:
    found: list[Place] = []
    for number, page in enumerate(pages):
        for item in page.structured:
            if item.syntax != "opengraph":
                continue
            parts = {name: texts_of(item.data, *keys) for name, keys in _OPENGRAPH.items()}
            thing = {name: values[0] for name, values in parts.items() if values}
            source = Source(page.url, "opengraph", thing, [], number == 0, False)
            if place := _from_parts(thing, source):
                found.append(place)
    return found


def _written(pages: list[PageContent]) -> list[Place]:
    return [
        Place(
            key=(_squeezed(address.street), _squeezed(address.town)),
            is_start=page.url == pages[0].url,
            address=Fact(value=address.value, page=page.url, words=address.words, method="text"),
            location=Fact(
                value=address.place, page=page.url, words=address.place_words, method="text"
            ),
        )
        for page in own_words(pages)
        for address in addresses_in(page.text)
    ]


def _squeezed(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()
