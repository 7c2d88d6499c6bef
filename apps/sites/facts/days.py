"""Days of the week, as websites write them in several languages."""

import re
from itertools import pairwise

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

# From Monday to Sunday: English, German, French, Spanish, Italian, Dutch, Portuguese.
_WORDS = (
    "monday mon mondays montag lundi lun lunes lunedì lunedi maandag segunda-feira",
    "tuesday tue tues tuesdays dienstag mardi mar martes martedì martedi dinsdag terça-feira",
    "wednesday wed weds wednesdays mittwoch mercredi mer miércoles miercoles mercoledì mercoledi"
    " woensdag quarta-feira",
    "thursday thu thur thurs thursdays donnerstag jeudi jeu jueves giovedì giovedi donderdag"
    " quinta-feira",
    "friday fri fridays freitag vendredi ven viernes venerdì venerdi vrijdag sexta-feira",
    "saturday sat saturdays samstag sonnabend samedi sam sábado sabado sabato zaterdag",
    "sunday sun sundays sonntag dimanche dim domingo domenica zondag",
)
# Two letters are also other words, so their case counts.
_LETTERS = ("Mo", "Tu Di", "We Mi", "Th Do", "Fr", "Sa", "Su So")
_GROUPS = {
    (0, 1, 2, 3, 4, 5, 6): (
        "daily|every ?day|all week|7 days a week|seven days a week|täglich|tous les jours"
        "|todos los días|tutti i giorni|dagelijks"
    ),
    (0, 1, 2, 3, 4): "weekdays|werktags",
    (5, 6): "weekends?",
}
_BY_WORD = {word: day for day, words in enumerate(_WORDS) for word in words.split()}
_BY_LETTERS = {word: day for day, words in enumerate(_LETTERS) for word in words.split()}
_ALL_WORDS = "|".join(sorted(_BY_WORD, key=lambda word: (-len(word), word)))
_ALL_LETTERS = "|".join(sorted(_BY_LETTERS))

DAY = rf"(?:(?i:{_ALL_WORDS})\b\.?|(?:{_ALL_LETTERS})\b\.?)"
_GROUP = "|".join(_GROUPS.values())
_TO = r" ?(?:-|–|—|(?i:\b(?:to|through|thru|until|till|bis|au|a|al|tot|até)\b)) ?"
_AND = r" ?(?:,|/|&|\+|(?i:\b(?:and|und|et|y|e|en)\b)) ?"
# `Monday`, `Mon-Fri`, `Sat & Sun`, `Daily`.
DAY_RANGES = rf"(?:(?i:{_GROUP})\b|{DAY}(?:(?:{_TO}|{_AND}){DAY}){{0,6}})"
_DAY_OR_LINK = re.compile(rf"(?P<day>{DAY})|(?P<to>{_TO})")


def day_of(text: str) -> int | None:
    """0 is Monday. Also `https://schema.org/Monday`."""
    word = re.split(r"[/#:]", text.strip())[-1].rstrip(".")
    return _BY_LETTERS.get(word, _BY_WORD.get(word.casefold()))


def days_in(text: str) -> list[int]:
    """The days that a text such as `Mon-Wed, Fri` names."""
    for days, pattern in _GROUPS.items():
        if re.fullmatch(pattern, text.strip(), re.IGNORECASE):
            return list(days)
    found: list[int] = []
    is_range = False
    for token in _DAY_OR_LINK.finditer(text):
        day = day_of(token["day"]) if token["day"] else None
        if day is None:
            is_range = True
            continue
        found += _between(found[-1], day) if is_range and found else [day]
        is_range = False
    return list(dict.fromkeys(found))


def named(days: list[int]) -> str:
    """`Monday–Friday`, `Monday, Wednesday`."""
    days = list(dict.fromkeys(days))
    is_run = len(days) > 2 and all((a + 1) % 7 == b for a, b in pairwise(days))
    if is_run:
        return f"{DAYS[days[0]]}–{DAYS[days[-1]]}"
    return ", ".join(DAYS[day] for day in days)


def _between(first: int, last: int) -> list[int]:
    """The days after the first, up to the last. The week goes round."""
    return [(first + step) % 7 for step in range(1, (last - first) % 7 + 1)]
