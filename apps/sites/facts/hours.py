"""Opening hours: of structured data, and in text."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from apps.sites.facts.business import Source
from apps.sites.facts.clock import MARKED, TIME_RANGE, clock, ranges_in
from apps.sites.facts.days import DAY_RANGES, day_of, days_in, named
from apps.sites.facts.pages import own_words
from apps.sites.facts.things import Thing, plain, texts_of, things_of
from apps.sites.models import Fact, PageContent

MOST = 21
MOST_PER_PAGE = 100

_CLOSED = r"(?i:closed|geschlossen|ruhetag|fermé|cerrado|chiuso|gesloten|fechado|encerrado)"
_ALL_DAY = r"(?i:(?:open )?24 ?hours|24 ?h\b|24/7|24 ?stunden)"
_AND = r"(?: ?[,/&]| (?i:and|und|et|y|e))? ?"
_TIMES = rf"(?:{TIME_RANGE}(?:{_AND}{TIME_RANGE}){{0,2}}|{_CLOSED}|{_ALL_DAY})"
_GAP = r"[ \t]?(?:[:;,|=]|-|–|(?i:from|von|de)\b)?[ \n]?(?:(?i:from|von|de) )?"
_FORWARD = re.compile(rf"(?<![\w-])(?P<days>{DAY_RANGES}){_GAP}(?P<times>{_TIMES})")
_BACKWARD = re.compile(
    rf"(?<![\w:.-])(?P<times>{TIME_RANGE})[ ,(\n]{{1,2}}(?P<days>{DAY_RANGES})(?![\w-])"
)
_ALWAYS = re.compile(
    r"(?i:\bopen 24/7\b|\bopen 24 hours a day\b|\b24 hours a day, 7 days a week\b)"
)
_CONTEXT = re.compile(
    r"\b(?:open|opening|hours|öffnungszeiten|geöffnet|horaires|ouvert|horario|horarios|abierto|orari"
    r"|aperto|openingstijden|geopend|visit us)\b",
    re.IGNORECASE,
)
# Characters before a single statement in which a word for opening hours is looked for.
_BEFORE = 200


class _Statement(NamedTuple):
    days: tuple[int, ...]
    times: str
    fact: Fact


def hours_of(business: list[Source], pages: list[PageContent], *, has_branches: bool) -> list[Fact]:
    """Those of one page: pages can be of different age. With branches, nothing is known."""
    if has_branches:
        return []
    for source in business:
        if found := _unique(_described(source)):
            return found
    for page in own_words(pages):
        if found := _written(page):
            return found
    return []


def _unique(facts: Iterator[Fact] | list[Fact]) -> list[Fact]:
    return list({fact.value: fact for fact in reversed(list(facts))}.values())[::-1][:MOST]


def _described(source: Source) -> Iterator[Fact]:
    for words in texts_of(source.thing, "openingHours"):
        for line in re.split(r"\s*[;\n]\s*", words):
            if line:
                yield source.fact(_readable(plain(line)), line)
    for hours in things_of(source.thing, "openingHoursSpecification"):
        if fact := _specified(hours, source):
            yield fact


def _readable(text: str) -> str:
    """`Mo-Fr 09:00-17:00` → `Monday–Friday 09:00–17:00`."""
    found = _FORWARD.fullmatch(text)
    return _value(found) if found else text


def _specified(hours: Thing, source: Source) -> Fact | None:
    """Hours of a season or a holiday are left out."""
    if texts_of(hours, "validFrom") or texts_of(hours, "validThrough"):
        return None
    day_words, opens, closes = (
        texts_of(hours, "dayOfWeek"), texts_of(hours, "opens"), texts_of(hours, "closes")
    )  # fmt: skip
    days = [day for words in day_words if (day := day_of(words)) is not None]
    if not days or not opens or not closes:
        return None
    start, end = clock(opens[0]), clock(closes[0])
    if start is None or end is None:
        return None
    times = "closed" if start == end == "00:00" else f"{start}–{end}"
    words = "\n".join([*day_words, opens[0], closes[0]])
    return source.fact(f"{named(days)} {times}", words)


def _written(page: PageContent) -> list[Fact]:
    statements = _statements(page, _FORWARD) or _statements(page, _BACKWARD)
    if len(statements) == 1 and not _has_context(page.text, statements[0]):
        statements = []
    if statements and not _contradict(statements):
        return _unique([statement.fact for statement in statements])
    if not statements and (found := _ALWAYS.search(page.text)):
        return [Fact(value="24/7", page=page.url, words=found[0], method="text")]
    return []


def _statements(page: PageContent, pattern: re.Pattern[str]) -> list[_Statement]:
    return [
        _Statement(
            tuple(days_in(found["days"])),
            _times(found["times"]),
            Fact(value=_value(found), page=page.url, words=found[0], method="text"),
        )
        for found in islice(pattern.finditer(page.text), MOST_PER_PAGE)
        if _is_certain(found)
    ]


def _is_certain(found: re.Match[str]) -> bool:
    """`So 10-12` can be anything. Days in words or marked times are needed."""
    is_word = len(re.split(r"\W", found["days"])[0]) > 2
    has_time = re.search(r"\d", found["times"]) is None or bool(MARKED.search(found["times"]))
    return is_word or has_time


def _value(found: re.Match[str]) -> str:
    return f"{named(days_in(found['days']))} {_times(found['times'])}"


def _times(text: str) -> str:
    if re.fullmatch(_CLOSED, text):
        return "closed"
    if re.fullmatch(_ALL_DAY, text):
        return "24 hours"
    return ", ".join(ranges_in(text)) or text


def _has_context(text: str, statement: _Statement) -> bool:
    at = text.find(statement.fact.words)
    return bool(_CONTEXT.search(text[max(0, at - _BEFORE) : at + len(statement.fact.words)]))


def _contradict(statements: list[_Statement]) -> bool:
    """True if a day has different hours: of a branch, a kitchen or another season."""
    times: dict[int, str] = {}
    return any(
        times.setdefault(day, statement.times) != statement.times
        for statement in statements
        for day in statement.days
    )
