"""Letters as people write them. Fonts of PDFs have other ideas."""

import re
import unicodedata

# Some fonts name the glyph of a letter, or of two that are joined, by a letter of another alphabet.
_MISNAMED = str.maketrans({"ϐ": "f", "ϔ": "ff", "Ɵ": "ti", "Ʃ": "tt", "\x02": "-"})
_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Some sheets draw ñ as an n and a tilde, and the tilde calls itself ñ.
_DOUBLED = re.compile("n(?=ñ)|N(?=Ñ)")

# Letters that are not a plain letter with an accent on it.
_PLAIN = str.maketrans(
    {"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
_APOSTROPHES = re.compile("['’‘ʼ`´.]")


def clean(text: str) -> str:
    """Composed, without ligatures; what has no meaning is U+FFFD, so that it can be stored."""
    text = unicodedata.normalize("NFKC", text.translate(_MISNAMED))
    return _DOUBLED.sub("", _UNREADABLE.sub("\ufffd", text))


def fold(text: str) -> str:
    """Without case, accents and apostrophes; hyphens are spaces. For comparing, not for showing."""
    text = unicodedata.normalize("NFKD", clean(text).casefold()).translate(_PLAIN)
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    return re.sub(r"[\s‐‑–—-]+", " ", _APOSTROPHES.sub("", text)).strip()
