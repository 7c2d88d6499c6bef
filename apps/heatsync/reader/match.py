"""Finds a swimmer by name. Names must be equal: the schedule of another child is worse than none.

Names are equal if their letters are, ignoring case, accents, hyphens and apostrophes. `Doe, Jane`
equals `Jane Doe`. A middle initial and a suffix count only if both names have one. The class of a
para swimmer does not count. If two swimmers have the same name, the team in brackets selects one:
`Lee, Ann (BLUE)`.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from apps.heatsync.reader.errors import AmbiguousSwimmer, SwimmerNotFound
from apps.heatsync.reader.sheet import Swim
from apps.heatsync.reader.text import fold

# Classes of para swimmers: (S9), S9/SB8/SM9.
_CLASS = re.compile(r"\((?:S[BM]?\d{1,2}\b[ /]*)+\)|\bS[BM]?\d{1,2}\b[\w/]*", re.IGNORECASE)
_SUFFIXES = {"jr", "sr", "ii", "iii", "iv"}
_MOST_NAMED = 10


class _Reading(NamedTuple):
    """One interpretation of a name. It has no spaces: Mary-Ann, Mary Ann and Maryann are equal."""

    given: str
    family: str
    initials: str
    suffix: str

    def fits(self, other: "_Reading") -> bool:
        return (
            (self.given, self.family) == (other.given, other.family)
            and (self.initials == other.initials or not (self.initials and other.initials))
            and (self.suffix == other.suffix or not (self.suffix and other.suffix))
        )


def find_swims(swims: Iterable[Swim], asked: str) -> list[Swim]:
    """All swims of one swimmer, including relays: `Lee, Ann`, or `Lee, Ann (BLUE)`.

    A family name alone is enough if only one swimmer has it. Raises SwimmerNotFound or
    AmbiguousSwimmer.
    """
    named = [swim for swim in swims if swim.swimmer_name]
    swimmers = _matching_swimmers(named, asked)
    if not swimmers:
        raise _not_found(named, asked)
    if len(swimmers) > 1:
        raise _ambiguous(named, swimmers, asked)
    return swimmers[0]


def is_same_name(some: str, other: str) -> bool:
    return (
        _fit(_readings(some), _readings(other))
        or _fit(_family_first(some), _readings(other))
        or _fit(_readings(some), _family_first(other))
    )


def normalised(name: str) -> str:
    """Returns the same text for different spellings of a name, the given name first.

    Without a comma, the last word is the family name. If a comma says otherwise, two spaces are
    before the family name, so `Ann Lee, Mary` differs from `Lee, Mary Ann`.
    """
    name, remark = _split_brackets(name)
    family, comma, given = name.partition(",")
    if not comma:
        return " ".join((*_tokens(name), *remark))
    first, last = _tokens(given), _tokens(family)
    gap = [] if first and len(last) == 1 else [""]
    return " ".join((*first, *gap, *last, *remark))


def _matching_swimmers(swims: Sequence[Swim], asked: str) -> list[list[Swim]]:
    """Swimmers that match. Brackets may belong to a name or a team.

    First the whole text is tried as a name, then the text in brackets as a team or an age.
    """
    found = _swimmers_named(swims, asked)
    text = asked.strip()
    brackets = [at for at, letter in enumerate(text) if letter == "(" and text.endswith(")")]
    for at in brackets:
        fact = _squashed(text[at + 1 : -1])
        found = found or [
            swimmer for swimmer in _swimmers_named(swims, text[:at]) if fact in _facts(swimmer)
        ]
    return found


def _swimmers_named(swims: Sequence[Swim], name: str) -> list[list[Swim]]:
    """Prefers swimmers with exactly this name."""
    swimmers = _swimmers(_swims_named(swims, name))
    return [some for some in swimmers if _is_exactly(some, name)] or swimmers


def _swims_named(swims: Sequence[Swim], name: str) -> list[Swim]:
    """Tries the name as written, then with the family name first, then as a family name alone."""
    asked, turned, family = _readings(name), _family_first(name), _squashed(name)
    return (
        [swim for swim in swims if _fit(asked, _readings(_name(swim)))]
        or [
            swim
            for swim in swims
            if _fit(turned, _readings(_name(swim))) or _fit(asked, _family_first(_name(swim)))
        ]
        or [
            swim
            for swim in swims
            if family and any(family == reading.family for reading in _readings(_name(swim)))
        ]
    )


def _fit(some: Iterable[_Reading], others: Sequence[_Reading]) -> bool:
    return any(one.fits(other) for one in some for other in others)


def _readings(name: str) -> list[_Reading]:
    """One reading if there is a comma. Otherwise the family name may begin at any space."""
    name, remark = _split_brackets(name)
    family, comma, given = name.partition(",")
    if comma:
        return [_reading(_tokens(given) + remark, _tokens(family))]
    tokens = _tokens(name)
    return [_reading(tokens[:at] + remark, tokens[at:]) for at in range(1, len(tokens))]


def _family_first(name: str) -> list[_Reading]:
    """Readings with the family name first, but without a comma: `Doe Jane`."""
    name, remark = _split_brackets(name)
    tokens = [] if "," in name else _tokens(name)
    return [_reading(tokens[at:] + remark, tokens[:at]) for at in range(1, len(tokens))]


def _split_brackets(name: str) -> tuple[str, list[str]]:
    """Splits a name and the words in brackets after it.

    These may be a nickname, which is part of the given name even after the family name.
    """
    text = _CLASS.sub(" ", name).strip()
    before, bracket, inside = text.partition("(")
    is_whole = len(_tokens(before)) > 1 or "," in before
    return (before, _tokens(bracket + inside)) if text.endswith(")") and is_whole else (text, [])


def _reading(given: list[str], family: list[str]) -> _Reading:
    suffix = "".join(token for token in given[1:] + family[1:] if token in _SUFFIXES)
    given = given[:1] + [token for token in given[1:] if token not in _SUFFIXES]
    family = family[:1] + [token for token in family[1:] if token not in _SUFFIXES]
    initials = "".join(token for token in given[1:] if len(token) == 1)
    names = given[:1] + [token for token in given[1:] if len(token) > 1]
    return _Reading("".join(names), "".join(family), initials, suffix)


def _tokens(text: str) -> list[str]:
    return fold(_CLASS.sub(" ", text).replace(",", " ")).split()


def _squashed(text: str) -> str:
    return "".join(_tokens(text))


def _same(some: str | None, other: str | None) -> bool:
    return _squashed(some or "") == _squashed(other or "")


def _name(swim: Swim) -> str:
    return swim.swimmer_name or ""


def _swimmers(swims: Iterable[Swim]) -> list[list[Swim]]:
    """Groups swims by swimmer. Two swimmers of a team may have one name, but different ages."""
    swimmers: list[list[Swim]] = []
    for swim in swims:
        for known in swimmers:
            if all(_is_same_swimmer(swim, other) for other in known):
                known.append(swim)
                break
        else:
            swimmers.append([swim])
    return swimmers


def _is_same_swimmer(swim: Swim, other: Swim) -> bool:
    return (
        _same(swim.team, other.team)
        and (swim.age == other.age or None in (swim.age, other.age))
        and _fit(_readings(_name(swim)), _readings(_name(other)))
    )


def _is_exactly(swims: Iterable[Swim], name: str) -> bool:
    asked = {*_readings(name), *_family_first(name)}
    return any(asked & set(_readings(_name(swim))) for swim in swims)


def _not_found(swims: Iterable[Swim], name: str) -> SwimmerNotFound:
    printed: dict[str, str] = {}
    for swim in swims:
        family, _, given = _name(swim).partition(",")
        for order in (f"{given} {family}", f"{family} {given}"):
            printed.setdefault(" ".join(_tokens(order)), _name(swim))
    near = difflib.get_close_matches(
        " ".join(_tokens(_split_brackets(name)[0])), printed, n=4, cutoff=0.7
    )
    suggestions = list(dict.fromkeys(printed[key] for key in near))
    hint = f" Did you mean {_joined_by_or(suggestions)}?" if suggestions else " Check the spelling."
    return SwimmerNotFound(f'"{name}" is not on this sheet.{hint}', suggestions=suggestions)


def _ambiguous(
    swims: Sequence[Swim], swimmers: Sequence[Sequence[Swim]], asked: str
) -> AmbiguousSwimmer:
    candidates = [_described(swimmer) for swimmer in swimmers]
    shown = _joined_by_or(candidates[:_MOST_NAMED])
    return AmbiguousSwimmer(
        f'"{asked}" matches {len(candidates)} swimmers: {shown}.{_hint(swims, swimmers[0])}',
        candidates=candidates,
    )


def _hint(swims: Sequence[Swim], swimmer: Sequence[Swim]) -> str:
    """The shortest text that selects this swimmer."""
    name = _name(swimmer[0])
    ways = {
        "the full name": name,
        "the name and team": f"{name} ({swimmer[0].team})",
        "the name, age and team": _described(swimmer),
    }
    fitting = (what for what, text in ways.items() if len(_matching_swimmers(swims, text)) == 1)
    what = next(fitting, None)
    return f' Enter {what}: "{ways[what]}".' if what else ""


def _described(swimmer: Sequence[Swim]) -> str:
    facts = [str(fact) for fact in (_age(swimmer), swimmer[0].team) if fact is not None]
    return f"{_name(swimmer[0])} ({', '.join(facts)})" if facts else _name(swimmer[0])


def _facts(swimmer: Sequence[Swim]) -> set[str]:
    """The texts in brackets that select this swimmer: team, age, or both."""
    age, team = str(_age(swimmer) or ""), swimmer[0].team or ""
    return {_squashed(text) for text in (team, age, age + team)} - {""}


def _age(swimmer: Sequence[Swim]) -> int | None:
    return next((swim.age for swim in swimmer if swim.age is not None), None)


def _joined_by_or(names: Sequence[str]) -> str:
    """Joins names with "or", because they contain commas."""
    return " or ".join(names)
