"""Postal addresses in text, by cautious patterns: a street with its number, and a town with its
state or postal code."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

MOST_PER_PAGE = 50
_STATES = {
    "Alabama": "AL", "Alaska": "AK", "Arizona": "AZ", "Arkansas": "AR", "California": "CA",
    "Colorado": "CO", "Connecticut": "CT", "Delaware": "DE", "Florida": "FL", "Georgia": "GA",
    "Hawaii": "HI", "Idaho": "ID", "Illinois": "IL", "Indiana": "IN", "Iowa": "IA", "Kansas": "KS",
    "Kentucky": "KY", "Louisiana": "LA", "Maine": "ME", "Maryland": "MD", "Massachusetts": "MA",
    "Michigan": "MI", "Minnesota": "MN", "Mississippi": "MS", "Missouri": "MO", "Montana": "MT",
    "Nebraska": "NE", "Nevada": "NV", "New Hampshire": "NH", "New Jersey": "NJ",
    "New Mexico": "NM", "New York": "NY", "North Carolina": "NC", "North Dakota": "ND",
    "Ohio": "OH", "Oklahoma": "OK", "Oregon": "OR", "Pennsylvania": "PA", "Rhode Island": "RI",
    "South Carolina": "SC", "South Dakota": "SD", "Tennessee": "TN", "Texas": "TX", "Utah": "UT",
    "Vermont": "VT", "Virginia": "VA", "Washington": "WA", "West Virginia": "WV",
    "Wisconsin": "WI", "Wyoming": "WY", "District of Columbia": "DC", "Ontario": "ON",
    "Quebec": "QC", "British Columbia": "BC", "Alberta": "AB", "Manitoba": "MB",
    "Saskatchewan": "SK", "Nova Scotia": "NS", "New Brunswick": "NB", "New South Wales": "NSW",
    "Victoria": "VIC", "Queensland": "QLD", "South Australia": "SA", "Western Australia": "WA",
    "Tasmania": "TAS", "Northern Territory": "NT", "Australian Capital Territory": "ACT",
}  # fmt: skip
_STATE = "|".join(
    sorted({*_STATES, *_STATES.values(), r"D\.C\."}, key=lambda name: (-len(name), name))
)
_STREET_KINDS = (
    "Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Way|Court|Ct|Place|Pl|Square|Sq"
    "|Highway|Hwy|Parkway|Pkwy|Terrace|Circle|Cir|Trail|Broadway|Plaza|Row|Alley|Crescent|Close"
    "|Quay|Mews|Hill|Gardens|Grove|Walk|Green|Pike|Loop|Wharf|Embankment|Esplanade|Parade"
)
# All parts are bounded, so that no text makes the search slow.
_WORD = r"[^\W_][\w.'’-]{0,30}"
_NAME = r"[A-ZÀ-ÖØ-Þ][\w.'’-]{0,30}"
_TOWN = rf"{_NAME}(?:[ -]{_NAME}){{0,3}}"
# Between the lines of an address.
_NEXT = r"(?: ?, ?\n?| ?\n)"
_STREET = (
    rf"\d{{1,6}}[A-Za-z]?(?:-\d{{1,5}})? (?:{_WORD} ){{1,5}}(?:{_STREET_KINDS})\b\.?"
    r"(?: (?:[NSEW]{1,2}|North|South|East|West)\b\.?)?"
)
_UNIT = rf"(?:(?:{_NEXT}| )(?:Suite|Ste|Unit|Apt|Floor|Fl|Room|Rm|#)\.? ?[\w-]{{1,8}})?"
_POST_CODE = r"(?:\d{5}(?:-\d{4})?|[A-Z]\d[A-Z] ?\d[A-Z]\d|\d{4})"
_AMERICAN = re.compile(
    rf"\b(?P<street>{_STREET}{_UNIT}){_NEXT}(?P<town>{_TOWN}),? (?P<region>{_STATE})\b"
    rf"(?:,? (?P<code>{_POST_CODE})\b)?"
)
# Without a word for a street, the postal code must be there.
_AMERICAN_CODE = re.compile(
    rf"\b(?P<street>\d{{1,6}} (?:{_WORD} ){{0,4}}{_WORD}{_UNIT}){_NEXT}"
    rf"(?P<town>{_TOWN}), (?P<region>{_STATE}) (?P<code>\d{{5}}(?:-\d{{4}})?)\b"
)
_BRITISH = re.compile(
    rf"\b(?P<street>\d{{1,4}}[A-Za-z]?(?:-\d{{1,4}})? (?:{_WORD} ){{0,4}}{_WORD})"
    rf"(?:{_NEXT}[^,\n\d]{{2,40}}){{0,2}}?{_NEXT}(?P<town>{_TOWN})(?:{_NEXT}| )"
    r"(?P<code>[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2})\b"
)
_NUMBER = r"\d{1,4} ?[a-zA-Z]?(?:[-/]\d{1,4}[a-z]?)?"
_ROMANCE = (
    "(?i:rue|avenue|boulevard|place|quai|chemin|route|allée|impasse|cours|via|viale|piazza|corso"
    "|largo|calle|avenida|plaza|paseo|carrer|rua|praça|travessa)"
)
_GERMANIC = (
    r"[\w.-]{0,30}(?i:stra(?:ß|ss)e|str\.|weg|platz|allee|gasse|ring|damm|ufer|straat|laan|plein"
    "|gade|vej|gatan|vägen)"
)
_STREETS = (
    rf"{_NUMBER},? (?i:bis |ter )?{_ROMANCE} (?:{_WORD} ){{0,5}}{_WORD}"
    rf"|{_ROMANCE} (?:{_WORD} ){{0,5}}{_WORD},? {_NUMBER}"
    rf"|(?:{_NAME} ){{0,3}}{_GERMANIC} {_NUMBER}"
)
_CONTINENTAL = re.compile(
    rf"\b(?P<street>{_STREETS}){_NEXT}(?:[A-Z]{{1,3}}[- ])?"
    rf"(?P<code>\d{{4}} [A-Z]{{2}}|\d{{4,5}}|\d{{3}} \d{{2}}) (?P<town>{_TOWN}(?: am {_NAME})?)"
)
_PATTERNS = (_AMERICAN, _AMERICAN_CODE, _CONTINENTAL, _BRITISH)
_HERE = re.compile(
    r"\b(?:[Ww]e are|[Ww]e're|[Ww]e’re) (?:located|based) in (?:the heart of )?"
    rf"(?P<town>{_TOWN}), (?P<region>{_TOWN})"
)


class PostalAddress(NamedTuple):
    """`words` are in the text to the letter. `region` is "" where addresses have none."""

    words: str
    place_words: str
    street: str
    town: str
    region: str
    code: str

    @property
    def value(self) -> str:
        return re.sub(r" ?,? ?\n ?", ", ", self.words)

    @property
    def place(self) -> str:
        return f"{self.town}, {self.region}" if self.region else self.town


def addresses_in(text: str) -> list[PostalAddress]:
    """Each one once, in the order of the text."""
    found: dict[tuple[str, str], tuple[int, PostalAddress]] = {}
    for pattern in _PATTERNS:
        for match in islice(pattern.finditer(text), MOST_PER_PAGE):
            address = _address(match)
            key = (address.street.casefold(), address.town.casefold())
            if not any(match.start() < end <= match.end() for end, _ in found.values()):
                found.setdefault(key, (match.end(), address))
    return [address for _, address in sorted(found.values(), key=lambda each: each[0])]


def places_in(text: str) -> Iterator[tuple[str, str]]:
    """Places where the text says that the business is: the place, and the words."""
    for match in _HERE.finditer(text):
        yield f"{match['town']}, {match['region']}".rstrip("."), match[0].rstrip(".")


def _address(match: re.Match[str]) -> PostalAddress:
    groups = match.groupdict()
    town_end = match.end("region") if groups.get("region") else match.end("town")
    return PostalAddress(
        words=match[0],
        place_words=match.string[match.start("town") : town_end],
        street=match["street"],
        town=match["town"],
        region=groups.get("region") or "",
        code=groups.get("code") or "",
    )
