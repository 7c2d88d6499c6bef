"""Finding a swimmer by name. Two names are equal or they are not: the schedule of someone else's
child is worse than none.

Equal are names of the same letters, whatever their case, accents, hyphens and apostrophes, and
`Doe, Jane` and `Jane Doe`. A middle initial and a suffix count only where both names have one, and
the class of a para swimmer does not count. Of two who have one name, brackets tell which is meant:
`Lee, Ann (BLUE)`.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from apps.heatsync.reader.errors import AmbiguousSwimmer, SwimmerNotFound
from apps.heatsync.reader.sheet import Swim
from apps.heatsync.reader.text import fold

# Of para swimmers: (S9), S9/SB8/SM9.
_CLASS = re.compile(r"\((?:S[BM]?\d{1,2}\b[ /]*)+\)|\bS[BM]?\d{1,2}\b[\w/]*", re.IGNORECASE)
_SUFFIXES = {"jr", "sr", "ii", "iii", "iv"}
_MOST_NAMED = 10


class _Reading(NamedTuple):
    """One way to read a name. Mary-Ann, Mary Ann and Maryann are one, so there are no spaces."""

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
    """All swims of the one who is asked for, relays too: `Lee, Ann`, or `Lee, Ann (BLUE)`.

    A family name alone will do, if only one swimmer has it. Raises SwimmerNotFound or
    AmbiguousSwimmer.
    """
    named = [swim for swim in swims if swim.swimmer_name]
    swimmers = _asked_for(named, asked)
    if not swimmers:
        raise _not_found(named, asked)
    if len(swimmers) > 1:
        raise _ambiguous(named, swimmers, asked)
    return swimmers[0]


def is_same_name(some: str, other: str) -> bool:
    return (
        _fit(_readings(some), _readings(other))
        or _fit(_turned(some), _readings(other))
        or _fit(_readings(some), _turned(other))
    )


def normalised(name: str) -> str:
    """One text for names that differ only in how they are written, the given name first.

    Without a comma nothing tells where the family name begins. So it is the last word, and where a
    comma says otherwise, two spaces stand before it: `Ann Lee, Mary` is not `Lee, Mary Ann`.
    """
    name, remark = _apart(name)
    family, comma, given = name.partition(",")
    if not comma:
        return " ".join((*_tokens(name), *remark))
    first, last = _tokens(given), _tokens(family)
    gap = [] if first and len(last) == 1 else [""]
    return " ".join((*first, *gap, *last, *remark))


def _asked_for(swims: Sequence[Swim], asked: str) -> list[list[Swim]]:
    """Brackets may be part of a name, or of a team. So all is a name, or else what is in them tells
    who is meant."""
    found = _who_are_called(swims, asked)
    text = asked.strip()
    brackets = [at for at, letter in enumerate(text) if letter == "(" and text.endswith(")")]
    for at in brackets:
        fact = _squashed(text[at + 1 : -1])
        found = found or [
            swimmer for swimmer in _who_are_called(swims, text[:at]) if fact in _facts(swimmer)
        ]
    return found


def _who_are_called(swims: Sequence[Swim], name: str) -> list[list[Swim]]:
    """Those who are called exactly so, if there are any."""
    swimmers = _swimmers(_called(swims, name))
    return [some for some in swimmers if _is_exactly(some, name)] or swimmers


def _called(swims: Sequence[Swim], name: str) -> list[Swim]:
    """As the name is written; else the other way round; else by the family name alone."""
    asked, turned, family = _readings(name), _turned(name), _squashed(name)
    return (
        [swim for swim in swims if _fit(asked, _readings(_name(swim)))]
        or [
            swim
            for swim in swims
            if _fit(turned, _readings(_name(swim))) or _fit(asked, _turned(_name(swim)))
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
    """One with a comma. Without, any space may be where the family name begins."""
    name, remark = _apart(name)
    family, comma, given = name.partition(",")
    if comma:
        return [_reading(_tokens(given) + remark, _tokens(family))]
    tokens = _tokens(name)
    return [_reading(tokens[:at] + remark, tokens[at:]) for at in range(1, len(tokens))]


def _turned(name: str) -> list[_Reading]:
    """`Doe Jane`, which only a comma would tell from `Jane Doe`."""
    name, remark = _apart(name)
    tokens = [] if "," in name else _tokens(name)
    return [_reading(tokens[at:] + remark, tokens[:at]) for at in range(1, len(tokens))]


def _apart(name: str) -> tuple[str, list[str]]:
    """A name and what stands in brackets behind it. A nickname is part of the given name, also
    where the family name comes last."""
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
    """Swims by swimmer. Two of one name may swim for one team, if they are not of one age."""
    swimmers: list[list[Swim]] = []
    for swim in swims:
        for known in swimmers:
            if all(_is_one(swim, other) for other in known):
                known.append(swim)
                break
        else:
            swimmers.append([swim])
    return swimmers


def _is_one(swim: Swim, other: Swim) -> bool:
    return (
        _same(swim.team, other.team)
        and (swim.age == other.age or None in (swim.age, other.age))
        and _fit(_readings(_name(swim)), _readings(_name(other)))
    )


def _is_exactly(swims: Iterable[Swim], name: str) -> bool:
    asked = {*_readings(name), *_turned(name)}
    return any(asked & set(_readings(_name(swim))) for swim in swims)


def _not_found(swims: Iterable[Swim], name: str) -> SwimmerNotFound:
    printed: dict[str, str] = {}
    for swim in swims:
        family, _, given = _name(swim).partition(",")
        for order in (f"{given} {family}", f"{family} {given}"):
            printed.setdefault(" ".join(_tokens(order)), _name(swim))
    near = difflib.get_close_matches(" ".join(_tokens(_apart(name)[0])), printed, n=4, cutoff=0.7)
    suggestions = list(dict.fromkeys(printed[key] for key in near))
    hint = f" Did you mean {_either(suggestions)}?" if suggestions else " Check how it is written."
    return SwimmerNotFound(f'"{name}" is not on this sheet.{hint}', suggestions=suggestions)


def _ambiguous(
    swims: Sequence[Swim], swimmers: Sequence[Sequence[Swim]], asked: str
) -> AmbiguousSwimmer:
    candidates = [_described(swimmer) for swimmer in swimmers]
    shown = _either(candidates[:_MOST_NAMED])
    return AmbiguousSwimmer(
        f'"{asked}" fits {len(candidates)} swimmers: {shown}.{_hint(swims, swimmers[0])}',
        candidates=candidates,
    )


def _hint(swims: Sequence[Swim], swimmer: Sequence[Swim]) -> str:
    """What to ask for instead, as long as it has to be."""
    name = _name(swimmer[0])
    ways = {
        "the whole name": name,
        "the team too": f"{name} ({swimmer[0].team})",
        "the age too": _described(swimmer),
    }
    fitting = (what for what, text in ways.items() if len(_asked_for(swims, text)) == 1)
    what = next(fitting, None)
    return f' Give {what}: "{ways[what]}".' if what else ""


def _described(swimmer: Sequence[Swim]) -> str:
    facts = [str(fact) for fact in (_age(swimmer), swimmer[0].team) if fact is not None]
    return f"{_name(swimmer[0])} ({', '.join(facts)})" if facts else _name(swimmer[0])


def _facts(swimmer: Sequence[Swim]) -> set[str]:
    """What may stand in brackets to tell who is meant: team, age, or both as they are shown."""
    age, team = str(_age(swimmer) or ""), swimmer[0].team or ""
    return {_squashed(text) for text in (team, age, age + team)} - {""}


def _age(swimmer: Sequence[Swim]) -> int | None:
    return next((swim.age for swim in swimmer if swim.age is not None), None)


def _either(names: Sequence[str]) -> str:
    """Names have commas, so they are put apart by "or"."""
    return " or ".join(names)
