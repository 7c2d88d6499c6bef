"""Writes a location into a prompt.

A location is words of a page, so it is quoted. Only what can be nothing but a place is written
plainly: names of states and countries, and before them a town of which all words but one are common
in names of towns. One word of a page is not an instruction.
"""

import unicodedata

from apps.sites.prompts.quoting import cleaned, quoted
from apps.sites.prompts.regions import REGIONS, TOWNS

LONGEST = 60
LONGEST_WORD = 20


def written_place(location: str) -> str | None:
    """None if nothing is left of the location."""
    clean = cleaned(location, LONGEST)
    return clean if _is_plain(clean) else quoted(location, LONGEST)


def _is_plain(place: str) -> bool:
    town, *regions = place.split(", ")
    return len(regions) <= 2 and REGIONS.issuperset(regions) and _is_town(town)


def _is_town(town: str) -> bool:
    if town in REGIONS:
        return True
    words = town.split(" ")
    free = [word for word in words if word.rstrip(".") not in TOWNS]
    return len(words) <= 3 and len(free) <= 1 and all(map(_is_name, free))


def _is_name(word: str) -> bool:
    is_short = 2 <= len(word) <= LONGEST_WORD
    return is_short and word.istitle() and all(map(_is_latin, word))


def _is_latin(letter: str) -> bool:
    return letter.isalpha() and unicodedata.name(letter, "").startswith("LATIN")
