"""Texts from outside, made safe for HTML, XML and Postgres."""

import re

NUL = "\0"
SURROGATE = re.compile("[\ud800-\udfff]")
# Neither XML nor a font knows them. Line feeds and tabs are not among them.
UNPRINTABLE = re.compile("[\x01-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")
# Word processors write a vertical tab for a line break inside a paragraph.
LINE_END = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
GAP = re.compile("[\t\n ]+")


def fault_of(text: str) -> str | None:
    """Why a text cannot be stored, or None."""
    if NUL in text:
        return "It contains a NUL character."
    if SURROGATE.search(text):
        return "It contains an invalid Unicode character."
    return None


def tidy(text: str) -> str:
    """Every line end as a line feed, no control characters, no spaces around."""
    return UNPRINTABLE.sub("", LINE_END.sub("\n", text)).strip()


def one_line(text: str) -> str:
    """Wide spaces, as between Chinese names, stay as they are."""
    return GAP.sub(" ", tidy(text))
