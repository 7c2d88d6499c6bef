"""Reads the swimmers of a relay, in the lines below it.

1) Doe, Jane A 12      2) Roe, Richard M11
Doe, Jane A 12         Roe, Richard M11
Doe, Jane A            Roe, Richard
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from apps.heatsync.reader.entry import Person, person
from apps.heatsync.reader.fields import AGE, split_fields
from apps.heatsync.reader.words import Word, text_of

# Fields may have no gap: "Doe, Jane2) Roe, Richard11". The end of a class, (S9), is no number.
_NUMBER = r"(?<!S)(?<!S\d)(?<!S[BM])(?<!S[BM]\d)\d\)"
_NUMBERED = re.compile(rf"(?P<leg>\d)\)\s*(?P<who>.*?)\s*(?={_NUMBER}|$)")
_NAME_AND_AGE = re.compile(r"(?P<name>\D+?)\s*(?P<age>[MWFBGX]?\d{1,3})")
_LISTED = re.compile(r"[^,]+, ?[^,]+")
_BLANK = re.compile(r"_+")

Legs = dict[int, Person]


def read_legs(words: Sequence[Word], after: int) -> Legs | None:
    """Swimmers by leg. Without numbers, they follow the legs that are known.

    Numbers without names are valid, and give an empty result. None if the line has no swimmers.
    """
    words = split_fields(words, None)
    text = _BLANK.sub("", text_of(words))
    if re.match(r"\d\)", text):
        found = [(int(leg["leg"]), leg["who"]) for leg in _NUMBERED.finditer(text)]
        return _legs((leg, _person(who)) for leg, who in found if who)
    people = _by_age(words) or _by_span(words)
    return _legs(enumerate(people, start=after + 1)) or None


def _legs(people: Iterable[tuple[int, Person | None]]) -> Legs | None:
    """None if one of the names in the line is invalid."""
    legs: Legs = {}
    for leg, who in people:
        if who is None:
            return None
        legs[leg] = who
    return legs


def _person(text: str) -> Person | None:
    if found := _NAME_AND_AGE.fullmatch(text):
        return person(found["name"], found["age"])
    name, _, age = text.rpartition(" ")
    return person(name, age) if AGE.fullmatch(age) else person(text, None)


def _by_age(words: Sequence[Word]) -> list[Person | None]:
    """Empty unless the line consists of names and ages only."""
    people, name = [], []
    for word in words:
        if AGE.fullmatch(word.text):
            people.append(person(text_of(name), word.text))
            name = []
        else:
            name.append(word)
    return [] if name else people


def _by_span(words: Sequence[Word]) -> list[Person | None]:
    """Empty unless the line has at least two spans, each with a family and a given name."""
    spans = [list(span) for _, span in groupby(words, key=lambda word: word.span)]
    names = [text_of(span) for span in spans]
    is_listed = len(names) > 1 and all(_LISTED.fullmatch(name) for name in names)
    return [person(name, None) for name in names] if is_listed else []
