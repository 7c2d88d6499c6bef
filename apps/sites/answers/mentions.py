"""Finds where an answer names the business.

A mention is a whole word or the domain. Case, accents, possessives, legal forms, Markdown, hyphens
and line breaks make no difference. A link counts once, although its text and its address may both
name the business. An e-mail address at the domain counts, because it leads to the business. Names
inside other addresses do not count: readers see the text of a link, not its target.

Known limits: a name that is an ordinary word ("Apple", "Target", "Square") also matches that word.
A name inside the longer name of another business ("Apple Bank") counts as a mention.
In scripts without spaces a name may be part of a longer word. Inflected names ("Applen" in Finnish)
and names written as one word ("BusinessCasual") do not match.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from apps.sites.answers.folding import Folded, fold_text
from apps.sites.answers.lists import listed_in
from apps.sites.answers.models import Mention
from apps.sites.answers.patterns import BusinessNames, NamePattern, patterns_of
from apps.sites.answers.sentences import Sentence, sentences_of
from apps.sites.answers.words import begins_word, ends_word

# More mentions in one answer change nothing, and they would only fill the report.
MOST = 50

ADDRESS = re.compile(
    r"(?:https?://|www\.)[^\s)\]>\"]+"
    r"|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}"
    r"|(?<![\w.-])(?:[A-Za-z0-9-]{1,63}\.){1,5}[a-z]{2,24}(?!\w)(?:/[^\s)\]>]*)?"
)
LINK = re.compile(r"\[([^\[\]\n]{0,300})\]\(([^()\s]{0,2000})[^()\n]{0,300}\)")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    start: int
    end: int
    kind: Literal["name", "domain"] = "name"

    def is_inside(self, start: int, end: int) -> bool:
        return start <= self.start and self.end <= end


def mentions_of(answer: str, names: BusinessNames) -> list[Mention]:
    places = places_of(answer, names)
    if not places:
        return []
    others = [other.start for other in listed_in(answer) if not is_own(other.name, names)]
    sentences = sentences_of(answer)
    return [_mention(answer, place, others, sentences) for place in places[:MOST]]


def names_business(text: str, names: BusinessNames) -> bool:
    return bool(places_of(text, names))


def is_own(name: str, names: BusinessNames) -> bool:
    """Whether a name that an answer lists is that of the business."""
    return names_business(name, names)


def places_of(text: str, names: BusinessNames) -> list[Place]:
    """In order, without overlaps."""
    found = [*_domain_places(text, names.domain), *_name_places(text, names.names)]
    return _once_for_each_link(text, _without_overlaps(found))


def _mention(answer: str, place: Place, others: list[int], sentences: list[Sentence]) -> Mention:
    number, sentence = _sentence_at(place, sentences)
    before = sum(start < place.start for start in others)
    return Mention(
        text=answer[place.start : place.end],
        kind=place.kind,
        start=place.start,
        end=place.end,
        rank=before + 1 if others else number,
        ranked_by="business" if others else "sentence",
        sentence=sentence.of(answer),
    )


def _sentence_at(place: Place, sentences: list[Sentence]) -> tuple[int, Sentence]:
    """A name that a line break divides belongs to the sentence where it begins."""
    for number, sentence in enumerate(sentences, 1):
        if place.start < sentence.end:
            return number, sentence
    return len(sentences), sentences[-1]


def _name_places(text: str, names: Iterable[str]) -> Iterator[Place]:
    folded = fold_text(text)
    addresses = [found.span() for found in ADDRESS.finditer(text)]
    for pattern in (pattern for name in names for pattern in patterns_of(name)):
        for start, end in _matches(folded, pattern):
            place = Place(*folded.original(start, end))
            if pattern.needs_capitals and not _has_capitals(text[place.start : place.end]):
                continue
            if pattern.is_host_like or not any(place.is_inside(*span) for span in addresses):
                yield place


def _matches(folded: Folded, pattern: NamePattern) -> Iterator[tuple[int, int]]:
    index = 0
    while found := pattern.regex.search(folded.text, index):
        start, end = found.span()
        index = start + 1
        if _is_whole(folded, start, end):
            yield start, end
            index = end


def _is_whole(folded: Folded, start: int, end: int) -> bool:
    is_edge = folded.is_edge(start) and folded.is_edge(end)
    return is_edge and begins_word(folded.text, start) and ends_word(folded.text, end)


def _has_capitals(text: str) -> bool:
    return not any(word[0].islower() for word in re.findall(r"[^\W\d_]+", text) if len(word) > 3)


def _domain_places(text: str, domain: str | None) -> Iterator[Place]:
    if domain is None or "." not in domain:
        return
    for found in _domain_pattern(domain).finditer(text):
        yield Place(*found.span(), kind="domain")


@lru_cache(maxsize=256)
def _domain_pattern(domain: str) -> re.Pattern[str]:
    forms = "|".join(map(re.escape, sorted({domain, _unicode_form(domain)})))
    labels = r"(?:[\w-]{1,63}\.){0,5}"
    return re.compile(rf"(?<![\w.-]){labels}(?:{forms})(?!\w)(?!-\w)(?!\.\w)", re.IGNORECASE)


def _unicode_form(domain: str) -> str:
    """`xn--…` names are written with their own letters by people."""
    try:
        return domain.encode("ascii").decode("idna")
    except UnicodeError:
        return domain


def _without_overlaps(places: Iterable[Place]) -> list[Place]:
    """Keeps the longest of places that overlap."""
    kept: list[Place] = []
    for place in sorted(places, key=lambda place: (place.start, -place.end, place.kind)):
        if not kept or place.start >= kept[-1].end:
            kept.append(place)
    return kept


def _once_for_each_link(text: str, places: list[Place]) -> list[Place]:
    for link in LINK.finditer(text) if places else ():
        if any(place.is_inside(*link.span(1)) for place in places):
            places = [place for place in places if not place.is_inside(*link.span(2))]
    return places
