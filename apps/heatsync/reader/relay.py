"""Who swims in a relay, in the lines below it.

1) Doe, Jane A 12      2) Roe, Richard M11
Doe, Jane A 12         Roe, Richard M11
"""

import re
from collections.abc import Iterable, Sequence

from apps.heatsync.reader.entry import Person, person
from apps.heatsync.reader.fields import AGE, unglued
from apps.heatsync.reader.words import Word, text_of

_NUMBERED = re.compile(r"(?P<leg>\d)\)\s*(?P<who>.*?)\s*(?=\b\d\)|$)")

Legs = dict[int, Person]


def read_legs(words: Sequence[Word], after: int) -> Legs | None:
    """By their place in the relay; without numbers they go on after those that are known."""
    words = unglued(words, None)
    text = text_of(words)
    if re.match(r"\d\)", text):
        found = [(int(leg["leg"]), leg["who"]) for leg in _NUMBERED.finditer(text)]
        return _legs((leg, _person(who)) for leg, who in found if who)
    return _legs(enumerate(_by_age(words), start=after + 1))


def _legs(people: Iterable[tuple[int, Person | None]]) -> Legs | None:
    """All of a line or nothing of it."""
    legs: Legs = {}
    for leg, who in people:
        if who is None:
            return None
        legs[leg] = who
    return legs or None


def _person(text: str) -> Person | None:
    name, _, age = text.rpartition(" ")
    return person(name, age) if AGE.fullmatch(age) else person(text, None)


def _by_age(words: Sequence[Word]) -> list[Person | None]:
    """Nothing, unless the line is names and ages throughout."""
    people, name = [], []
    for word in words:
        if AGE.fullmatch(word.text):
            people.append(person(text_of(name), word.text))
            name = []
        else:
            name.append(word)
    return [] if name else people
