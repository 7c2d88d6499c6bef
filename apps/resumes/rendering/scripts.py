"""From which side and, as far as the letters show it, in which language a text is written.

Fonts for Chinese, Japanese and Korean differ, and a screen reader chooses its voice by language.
Latin text tells nothing, so it has the language of the page.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Literal

Direction = Literal["ltr", "rtl"]
# Chinese characters look different in China, Taiwan, Japan and Korea.
Han = Literal["SC", "TC", "JP", "KR"]

PAGE_LANGUAGE = "en"
FIRST_GREEK = 0x370
CHINESE = "zh"
FIRST_EAST_ASIAN = "\u2e80"
HAN: dict[str, Han] = {"zh-CN": "SC", "zh-TW": "TC", "ja": "JP", "ko": "KR"}

# In this order: Japanese and Korean also have Chinese characters, Persian also has Arabic letters.
LANGUAGES = tuple(
    (language, re.compile(f"[{letters}]"))
    for language, letters in (
        ("ja", "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"),
        ("ko", "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"),
        (CHINESE, "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"),
        ("he", "\u0590-\u05ff\ufb1d-\ufb4f"),
        ("fa", "\u067e\u0686\u0698\u06a9\u06af\u06cc"),
        ("ar", "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefe"),
        ("el", "\u0370-\u03ff\u1f00-\u1fff"),
        ("uk", "\u0404\u0406\u0407\u0454\u0456\u0457\u0490\u0491"),
        ("ru", "\u0400-\u052f"),
    )
)


def direction_of(text: str, otherwise: Direction = "ltr") -> Direction:
    """The direction of most letters. Without letters, numbers are from left to right."""
    if text.isascii():
        return "ltr" if text.strip() else otherwise
    count = Counter(map(unicodedata.bidirectional, text))
    right, left = count["R"] + count["AL"], count["L"]
    if right == left == 0:
        return otherwise
    return "rtl" if right > left else "ltr"


def language_of(text: str, share: float = 1 / 3) -> str | None:
    """None if fewer letters than `share` are from other scripts than Latin. The default is a third,
    because a Chinese character stands for several letters."""
    if text.isascii():
        return None
    letters = [letter for letter in text if letter.isalpha()]
    others = sum(1 for letter in letters if ord(letter) >= FIRST_GREEK)
    if others < share * len(letters) or not others:
        return None
    found = next((language for language, known in LANGUAGES if known.search(text)), None)
    return chinese_of(letters) if found == CHINESE else found


def has_large_fonts(text: str) -> bool:
    """Whether a text needs fonts of about 20 MB each: East Asian scripts, and emoji."""
    return max(text, default="") >= FIRST_EAST_ASIAN


def han_of(lines: Iterable[str]) -> Han:
    """Which Chinese characters a document has, mostly. One font has all of them, and each further
    one would take 40 MB of memory."""
    languages = [language_of(line) for line in lines]
    return HAN[max(HAN, key=languages.count)]


def chinese_of(letters: list[str]) -> str:
    """With traditional characters, if all letters are in the character set of Taiwan and not all in
    that of China."""
    text = "".join(letters)
    return "zh-TW" if is_in("big5", text) and not is_in("gb2312", text) else "zh-CN"


def is_in(character_set: str, text: str) -> bool:
    try:
        text.encode(character_set)
    except UnicodeEncodeError:
        return False
    return True
