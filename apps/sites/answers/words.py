"""Where words begin and end, also in scripts that put no spaces between them."""

import unicodedata
from typing import Literal

Script = Literal["spaced", "katakana", "hangul", "unspaced"]

_RANGES: dict[Script, tuple[tuple[int, int], ...]] = {
    "katakana": ((0x30A1, 0x30FF), (0x31F0, 0x31FF)),
    "hangul": ((0x1100, 0x11FF), (0x3130, 0x318F), (0xAC00, 0xD7AF)),
    # Thai, Lao, Myanmar, Khmer, Hiragana, Chinese characters.
    "unspaced": (
        (0x0E00, 0x0EFF),
        (0x1000, 0x109F),
        (0x1780, 0x17FF),
        (0x2E80, 0x2FDF),
        (0x3005, 0x3007),
        (0x3041, 0x309F),
        (0x3400, 0x9FFF),
        (0xF900, 0xFAFF),
        (0x20000, 0x3FFFF),
    ),
}


def is_word(letter: str) -> bool:
    """Whether a character is part of a word. Vowel signs of Indic scripts are."""
    return letter.isalnum() or unicodedata.category(letter)[0] == "M"


def begins_word(text: str, index: int) -> bool:
    return index == 0 or _is_boundary(text[index - 1], text[index])


def ends_word(text: str, index: int) -> bool:
    """In Korean, particles follow a name without a space."""
    if index == len(text):
        return True
    before, after = text[index - 1], text[index]
    if script_of(before) == script_of(after) == "hangul":
        return True
    return _is_boundary(before, after)


def script_of(letter: str) -> Script:
    code = ord(letter)
    if code < 0x0E00:
        return "spaced"
    for script, ranges in _RANGES.items():
        if any(first <= code <= last for first, last in ranges):
            return script
    return "spaced"


def _is_boundary(before: str, after: str) -> bool:
    """A change of the script ends a word, as in `Sonyは`, but not between two scripts with spaces.
    A run of katakana is one word."""
    if not (is_word(before) and is_word(after)):
        return True
    if unicodedata.category(after)[0] == "M":
        return False
    scripts = script_of(before), script_of(after)
    if scripts[0] == scripts[1]:
        return scripts[0] == "unspaced"
    return True
