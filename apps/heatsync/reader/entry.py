"""Reads one row: a lane with a swimmer or a relay team.

If there is a header, a word belongs to the label above it. Otherwise its form decides. A row
without a name, or with neither a time nor an age, is not an entry.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from apps.heatsync.reader.fields import (
    AGE,
    GENDER,
    HOLDS_TIME,
    SEED,
    age_at,
    is_alone,
    is_at_seed,
    split_fields,
)
from apps.heatsync.reader.table_header import TableHeader
from apps.heatsync.reader.words import Word, text_of

# Tied ranks have a star. Swimmers who share a lane have letters.
_LANE = re.compile(r"\*?(?P<number>\d{1,3})(?P<half>[A-D])?")
# The registration number of a swimmer, between name and age.
_ID = re.compile(r"(?=.*\d)[A-Z\d*-]{4,16}")
_BLANK = re.compile(r"(?P<standard>[A-Z]{0,4})(?:_+|[-–—.]{2,})")
_DASH = re.compile(r"[-–—]")
_EXHIBITION = re.compile(r"[xX]")
_STANDARD = re.compile(r"\*|[A-Za-z][\w*+#/-]{0,7}")
_RELAY_LETTER = re.compile(r"['\"]?(?P<letter>[A-Z])['\"]?")
_RELAY_AGES = re.compile(r"[MWFX]\d{1,3}\+?")
# A class such as (S9) or S9/SB8/SM9 may follow.
_NAME = re.compile(r"['’‘ʻ]?[^\W\d_]\D{0,80}(?:\([\w /]+\)|\bS[BM]?\d{1,2}[\w/]*)?", re.IGNORECASE)
# Words instead of a time that are not in the list of known ones.
_NO_TIME = re.compile(r"[A-Za-z][A-Za-z./]{1,7}")
# Exhibition, para, foreign and unattached swimmers.
_MARKS = " *%#&+~^"
_COMMA = re.compile(r"\s*,\s*")
# The association of a team, such as MR.
_LSC = re.compile(r"[A-Z]{2}")

_NameAgeTeam = tuple[Sequence[Word], Word | None, Sequence[Word]]


@dataclass(slots=True)
class Person:
    name: str
    age: int | None = None
    gender: str | None = None
    school_year: str | None = None


@dataclass(slots=True)
class Entry:
    """`number` is the lane, or the rank on a psych sheet. `half` is the letter in a shared lane.

    Without a person and a team, the lane is empty.
    """

    number: int | None = None
    half: str | None = None
    person: Person | None = None
    team: str | None = None
    seed: str | None = None
    standard: str | None = None
    exhibition: bool = False
    relay: str | None = None
    legs: dict[int, Person] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return self.person is None and self.team is None


def read_swimmer(words: Sequence[Word], header: TableHeader | None) -> Entry | None:
    entry, words = _read_edges(words, header, is_relay=False)
    if not words:
        return _empty_lane(entry)
    name, age, team = _split(words, header)
    entry.person = person(text_of(_without_id(name)), age.text.upper() if age else None)
    entry.team = text_of(_without_lsc(team, header)) or None
    if entry.person is None or HOLDS_TIME.search(entry.team or ""):
        return None
    if not team and _reach_team(name, header):
        return None
    # Some sheets have no times, and some swimmers have no age.
    is_clear = (age and header) or (entry.number is not None and _begin_at_team(team, header))
    return entry if entry.seed or is_clear else None


def read_relay(words: Sequence[Word], header: TableHeader | None) -> Entry | None:
    entry, words = _read_edges(words, header, is_relay=True)
    if not words:
        return _empty_lane(entry)
    words = _without_lsc(words, header)
    if len(words) > 1 and (found := _RELAY_LETTER.fullmatch(words[-1].text)):
        entry.relay, words = found["letter"], words[:-1]
    entry.team = text_of(word for word in words if not _RELAY_AGES.fullmatch(word.text))
    is_team = _NAME.search(entry.team) and not HOLDS_TIME.search(entry.team)
    return entry if is_team and (entry.seed or entry.relay) else None


def person(name: str, age: str | None) -> Person | None:
    """None if the text cannot be a name."""
    name = _COMMA.sub(", ", name).strip(_MARKS)
    if not _NAME.fullmatch(name):
        return None
    if age and GENDER.fullmatch(age):
        return Person(name, gender=age)
    found = AGE.fullmatch(age) if age else None
    if not found:
        return Person(name)
    years = int(found["age"]) if found["age"] else None
    return Person(name, years, found["gender"], found["year"])


def _empty_lane(entry: Entry) -> Entry | None:
    return entry if entry.number is not None and entry.seed is None else None


def _read_edges(
    words: Sequence[Word], header: TableHeader | None, *, is_relay: bool
) -> tuple[Entry, Sequence[Word]]:
    """Reads the lane before the name, and time and standard after it. Returns the other words."""
    entry = Entry()
    words, entry.standard = _without_blanks(split_fields(words, header))
    if words and (number := _lane(words[0], header)):
        entry.number, entry.half, words = int(number["number"]), number["half"], words[1:]
    at = _seed_at(words, header)
    if at is None:
        if _ends_at_seed(words, header) and _NO_TIME.fullmatch(words[-1].text):
            entry.seed, words = words[-1].text, words[:-1]
        return entry, words
    seed = SEED.fullmatch(words[at].text)
    assert seed
    words, time, rest = words[:at], words[at], words[at + 1 :]
    entry.seed, entry.exhibition = seed["seed"], bool(seed["exhibition"])
    if words and _EXHIBITION.fullmatch(words[-1].text) and is_at_seed(words[-1], header):
        entry.exhibition, words = True, words[:-1]
    is_before = _ends_at_seed(words, header) or _touches(words, time)
    if not is_relay and is_before and _STANDARD.fullmatch(words[-1].text):
        entry.standard, words = words[-1].text, words[:-1]
    codes = [word.text for word in rest if _STANDARD.fullmatch(word.text)]
    entry.standard = " ".join(codes) or seed["standard"] or entry.standard
    return entry, words


def _without_blanks(words: Sequence[Word]) -> tuple[Sequence[Word], str | None]:
    """Removes blanks to fill in, `____`. In `B____`, B is a standard that the swimmer has met."""
    kept, standard = [], None
    for at, word in enumerate(words):
        if found := _BLANK.fullmatch(word.text):
            standard = found["standard"] or standard
        elif not (_DASH.fullmatch(word.text) and is_alone(words, at)):
            kept.append(word)
    return kept, standard


def _lane(word: Word, header: TableHeader | None) -> re.Match[str] | None:
    label = header and (header.get("name") or header.get("team"))
    is_before = not label or word.x0 < label.x0 + word.size
    return _LANE.fullmatch(word.text) if is_before else None


def _seed_at(words: Sequence[Word], header: TableHeader | None) -> int | None:
    """The first time is the seed, a second one is a cut.

    Without a time, the last word such as NT counts, because a team may be named NT.
    """
    seeds = [
        at
        for at, word in enumerate(words)
        if SEED.fullmatch(word.text) and is_at_seed(word, header)
    ]
    times = [at for at in seeds if HOLDS_TIME.search(words[at].text)]
    return times[0] if times else seeds[-1] if seeds else None


def _ends_at_seed(words: Sequence[Word], header: TableHeader | None) -> bool:
    """Whether the last word begins below the label of times, in a separate span."""
    label = header and header.get("seed")
    if not header or not label or len(words) < 2 or words[-1].span == words[-2].span:
        return False
    before = [extent.x1 for name in ("team", "relay") if (extent := header.get(name))]
    return words[-1].x0 > max(label.x0 - words[-1].size, *before, 0.0)


def _touches(words: Sequence[Word], time: Word) -> bool:
    """Whether the last word is a letter directly before the time, as in `B28.11`.

    The end of a long team name is not, because its span has more words.
    """
    own = [word for word in words if word.span == time.span]
    return len(own) == 1 and len(own[0].text) == 1 and own[0].x1 == time.x0


def _without_id(name: Sequence[Word]) -> Sequence[Word]:
    at = len(name) - 1
    is_id = at > 0 and _ID.fullmatch(name[at].text) and is_alone(name, at)
    return name[:at] if is_id else name


def _without_lsc(words: Sequence[Word], header: TableHeader | None) -> Sequence[Word]:
    return [word for at, word in enumerate(words) if not _is_lsc(words, at, header)]


def _is_lsc(words: Sequence[Word], at: int, header: TableHeader | None) -> bool:
    """The association (LSC) of a team is below its own label, or left of the label of teams."""
    word, lsc, team = words[at], header and header.get("lsc"), header and header.get("team")
    if len(words) < 2 or not _LSC.fullmatch(word.text) or not is_alone(words, at):
        return False
    if lsc:
        return lsc.x0 - word.size < word.x0 and word.x1 < lsc.x1 + word.size
    return at == 0 and team is not None and word.x1 < team.x0


def _split(words: Sequence[Word], header: TableHeader | None) -> _NameAgeTeam:
    """Splits into name, age and team. Without an age, positions and spans decide."""
    at = age_at(words, header)
    if at is not None:
        return words[:at], words[at], words[at + 1 :]
    label = header and header.get("team")
    first = _team_at(words, label.x0 - words[0].size / 2 if label else 0.0)
    return words[:first], None, words[first:]


def _team_at(words: Sequence[Word], x: float) -> int:
    """The first span at or after `x`; the first word, if the whole line is one span."""
    is_one = words[0].span == words[-1].span
    for at, word in enumerate(words):
        if at and word.x0 >= x and (is_one or word.span != words[at - 1].span):
            return at
    return len(words)


def _begin_at_team(team: Sequence[Word], header: TableHeader | None) -> bool:
    label = header and header.get("team")
    return bool(team and label and abs(team[0].x0 - label.x0) < team[0].size / 2)


def _reach_team(name: Sequence[Word], header: TableHeader | None) -> bool:
    """Whether the name reaches so far to the right that it must contain the team."""
    label = header and header.get("team")
    return label is not None and any(word.x1 > label.x0 + word.size for word in name)
