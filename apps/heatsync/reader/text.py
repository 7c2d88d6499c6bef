"""Corrects letters that fonts of PDFs encode wrongly, and folds text for comparison."""

import re
import unicodedata

# Some fonts encode a letter or a ligature as a letter of another alphabet.
_MISNAMED = str.maketrans({"ϐ": "f", "ϔ": "ff", "Ɵ": "ti", "Ʃ": "tt", "\x02": "-"})
_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Some sheets draw ñ as an n and a tilde that is encoded as ñ.
_DOUBLED = re.compile("n(?=ñ)|N(?=Ñ)")

# Letters that Unicode does not decompose into a base letter and an accent.
_PLAIN = str.maketrans(
    {"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
_APOSTROPHES = re.compile("['’‘ʼ`´.]")


def clean(text: str) -> str:
    """Composes accents and expands ligatures. Characters that cannot be stored become U+FFFD."""
    text = unicodedata.normalize("NFKC", text.translate(_MISNAMED))
    return _DOUBLED.sub("", _UNREADABLE.sub("\ufffd", text))


def fold(text: str) -> str:
    """Removes case, accents and apostrophes, and turns hyphens into spaces, for comparisons."""
    text = unicodedata.normalize("NFKD", clean(text).casefold()).translate(_PLAIN)
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    return re.sub(r"[\s‐‑–—-]+", " ", _APOSTROPHES.sub("", text)).strip()
