"""Quotes words of a page, so that a prompt shows where they begin and end.

A page may contain instructions for models. They are data: they stand between “ and ”, and the text
between them has no mark that could end the quotation.
"""

import re
import unicodedata

OPEN, CLOSE = "“", "”"

# Letters, digits and ordinary marks. Quotation marks, brackets, marks of Markdown and markup, line
# breaks and invisible characters become a space.
_KEPT_MARKS = frozenset(" .,;:!?&%+/()-–$€£¥@°·§№")
_KEPT_KINDS = frozenset({"Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Mn", "Nd", "Nl", "No"})
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ](?=\w)")
_KEPT_APOSTROPHE = "\ue000"


def quoted(text: str, most: int) -> str | None:
    """The text in quotation marks, with at most `most` characters. None if nothing is left."""
    clean = cleaned(text, most)
    return f"{OPEN}{clean}{CLOSE}" if clean else None


def cleaned(text: str, most: int) -> str:
    normal = unicodedata.normalize("NFKC", text.replace(_KEPT_APOSTROPHE, " "))
    marked = _APOSTROPHE.sub(_KEPT_APOSTROPHE, normal)
    plain = "".join(letter if _is_kept(letter) else " " for letter in marked)
    words = " ".join(plain.split()).strip(" ,;:-–")
    return _shortened(words.replace(_KEPT_APOSTROPHE, "'"), most)


def _is_kept(letter: str) -> bool:
    if letter in _KEPT_MARKS or letter == _KEPT_APOSTROPHE:
        return True
    return unicodedata.category(letter) in _KEPT_KINDS


def _shortened(text: str, most: int) -> str:
    """Ends with a whole word, unless the first word alone is too long."""
    if len(text) <= most:
        return text
    start = text[: most - 1]
    whole = start.rpartition(" ")[0] if text[most - 1] != " " else start
    return (whole or start).rstrip(" ,;:.-–") + "…"
