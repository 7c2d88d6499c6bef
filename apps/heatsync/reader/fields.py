"""The form and the position of ages and times.

Two adjacent fields without a gap look like one word. Usually they were drawn separately, which is
known. Otherwise the change between letters and digits shows where the first one ends.
"""

import re
from collections.abc import Iterator, Sequence

from apps.heatsync.reader.table_header import TableHeader
from apps.heatsync.reader.words import Word, halves

_TIME = r"(?:\d{1,2}[:.])?(?:\d{1,2}:)?\d{1,3}[.,]\d{1,2}(?:[YLSM]|[*#@!$&+]+)?"
_NO_TIME = r"(?:NT|NS|NP|ND|NQ|SCR|WD|DQ|DNF|DNS|DFS)[YLS]?|(?i:No Time)"
# J marks a decision of a judge, B a bonus swim, Q a qualified swimmer.
SEED = re.compile(
    rf"(?P<exhibition>[xX])?[J*#@!$&+]?(?P<seed>{_TIME}|{_NO_TIME})(?P<standard>[BQ])?"
)
HOLDS_TIME = re.compile(r"\d[:.,]\d\d")

# A year of birth may be printed instead. It does not give the age.
AGE = re.compile(
    r"(?P<gender>[MWFBGX])?(?:(?P<age>\d{1,3})|(?:19|20)\d\d)|"
    r"(?P<year>FR|SO|JR|SR|RS|GS|GR|5Y|\dTH)"
)
# May be printed instead of an age. Elsewhere it is an initial.
GENDER = re.compile(r"[MWF]")

# The maximum distance of an age from its label, as a multiple of its height.
_MAX_DISTANCE = 3.0

_LEG = re.compile(r"\d\)")
_TEAM_AND_SEED = re.compile(rf"(.*[^\d:.,xX]){_TIME}")
_NAME_AND_AGE = re.compile(r"(\D{2,}?)[MWFBGX]?\d{1,2}")
_AGE_AND_TEAM = re.compile(r"([MWFBGX]?\d{1,2})[^\W\d].*")


def is_at_seed(word: Word, header: TableHeader | None) -> bool:
    """Times end below or right of their label. Without a header they may be anywhere."""
    label = header and header.get("seed")
    return not label or word.x1 > label.x0 - word.size


def is_at_age(word: Word, header: TableHeader | None, slack: float = 0.0) -> bool:
    label = header and header.get("age")
    return not label or (
        label.x0 - word.size * (1 + slack) < word.x1 and word.x0 < label.x1 + word.size * slack
    )


def age_at(words: Sequence[Word], header: TableHeader | None) -> int | None:
    """The age is below its label. If none is, an age beside it that is a separate span counts."""
    is_labelled = bool(header and header.get("age"))
    ages = [
        at
        for at, word in enumerate(words)
        # Below a label, a school year may be printed in mixed case: Fr.
        if at and AGE.fullmatch(word.text.upper() if is_labelled else word.text)
    ]
    found = [at for at in ages if is_at_age(words[at], header)] or [
        at for at in ages if is_alone(words, at) and is_at_age(words[at], header, _MAX_DISTANCE)
    ]
    if not found:
        return _gender_at(words, header)
    # Prefers numbers, because SO and JR may be the end of a name.
    return min(found, key=lambda at: (not words[at].text[-1].isdigit(), at), default=None)


def _gender_at(words: Sequence[Word], header: TableHeader | None) -> int | None:
    """A gender without an age. Without a label, the last word is not one: a team may be named M."""
    last = len(words) if header and header.get("age") else len(words) - 1
    for at, word in enumerate(words[:last]):
        if at and GENDER.fullmatch(word.text) and is_alone(words, at) and is_at_age(word, header):
            return at
    return None


def is_alone(words: Sequence[Word], at: int) -> bool:
    return all(word.span != words[at].span for word in (*words[:at], *words[at + 1 :]))


def split_fields(words: Sequence[Word], header: TableHeader | None) -> Sequence[Word]:
    """Splits words that consist of two adjacent fields."""
    pieces: list[Word] = []
    for word in _merge_no_time(words):
        cut = _split_position(word, pieces[-1] if pieces else None, header)
        pieces += halves(word, cut) if cut else [word]
    return _split_age(pieces, header)


def _merge_no_time(words: Sequence[Word]) -> Iterator[Word]:
    """Merges `No Time` into one field."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.text.casefold() == "no" and rest and rest[0].text.casefold() == "time":
            time = rest.pop(0)
            word = word._replace(text=f"{word.text} {time.text}", x1=time.x1, seam=0)
        yield word


def _split_position(word: Word, before: Word | None, header: TableHeader | None) -> int:
    """The number of letters before the end of the first field; 0 if the word is one field."""
    if word.seam and _are_two(before, *halves(word, word.seam), header):
        return word.seam
    if SEED.fullmatch(word.text):
        return 0
    found = _TEAM_AND_SEED.fullmatch(word.text)
    return len(found[1]) if found and is_at_seed(word, header) else 0


def _are_two(before: Word | None, left: Word, right: Word, header: TableHeader | None) -> bool:
    if _LEG.match(right.text):
        return True
    # The left part ends a longer span, so the right part is a separate field.
    is_end = before is not None and before.span == left.span
    if SEED.fullmatch(right.text):
        return is_end or is_at_seed(right, header)
    # 1|2 and W|12 are one age, drawn in two pieces.
    if AGE.fullmatch(right.text) and not left.text[-1].isdigit():
        return is_end or (len(left.text) > 1 and is_at_age(right, header))
    is_age = AGE.fullmatch(left.text) and left.text[-1].isdigit() and is_at_age(left, header)
    return bool(is_age) and right.text[0].isalpha()


def _split_age(words: Sequence[Word], header: TableHeader | None) -> Sequence[Word]:
    """Splits only below the label of ages, and if there is no age: H2O and 100% are teams."""
    label = header and header.get("age")
    if not label or age_at(words, header) is not None:
        return words
    for at, word in enumerate(words):
        if word.x0 < label.x1 and word.x1 > label.x0:
            found = _NAME_AND_AGE.fullmatch(word.text) or _AGE_AND_TEAM.fullmatch(word.text)
            if found:
                return [*words[:at], *halves(word, len(found[1])), *words[at + 1 :]]
    return words
