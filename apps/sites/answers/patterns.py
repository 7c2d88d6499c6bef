"""The names of a business that answers may use, as patterns."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from urllib.parse import urlsplit

from apps.sites.answers.folding import fold
from apps.sites.answers.legal import ARTICLES, FORMS, GLUED, LEADING, PHRASES, WEAK_FORMS
from apps.sites.answers.words import is_word
from apps.sites.models import Facts

AND = ("&", "+", "and")
# A shorter name would match in almost every answer.
SHORTEST = 2
HOST_LIKE = re.compile(r"[a-z0-9-]+\.[a-z]{2,}", re.IGNORECASE)

_SIDE = "*_~`\\-\u2010\u2011"
# Between two words of a name: spaces, hyphens and marks of Markdown, or one line break. A hyphen
# after a line break begins an item of a list.
_GAP = rf"(?:(?:[^\S\n]|[{_SIDE}]){{1,6}}|[^\S\n]{{0,4}}\n[^\S\n]{{0,8}})"
# In place of a mark inside a name, as in `Joe's` or `A.T.U.`.
_LOOSE = rf"(?:[^\S\n]|[{_SIDE}.,'/!]){{0,4}}"


@dataclass(frozen=True, slots=True)
class BusinessNames:
    """`names` are as the website has them, and `domain` is its host without `www.`."""

    names: tuple[str, ...] = ()
    domain: str | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a name. `is_apart` if a space or hyphen is before it."""

    text: str
    is_apart: bool


@dataclass(frozen=True, slots=True)
class NamePattern:
    """For folded text. With `needs_capitals`, every word in the answer has a capital. A host-like
    name such as `Booking.com` may also be matched inside addresses."""

    regex: re.Pattern[str]
    needs_capitals: bool
    is_host_like: bool


def names_of(facts: Facts, site: str) -> BusinessNames:
    """`site` is an address, or a host."""
    names = (facts.business_name.value,) if facts.business_name else ()
    return BusinessNames(names, domain_of(site))


def domain_of(site: str) -> str | None:
    try:
        host = urlsplit(site if "//" in site else f"//{site}").hostname
    except ValueError:
        return None
    return host.rstrip(".").removeprefix("www.") or None if host else None


def name_key(name: str) -> str:
    """Equal for forms of the same name, with and without a legal form."""
    return " ".join(token.text for token in without_form(tokens_of(name)))


@lru_cache(maxsize=256)
def patterns_of(name: str) -> tuple[NamePattern, ...]:
    core = without_form(tokens_of(name))
    found = [_pattern(core, name, needs_capitals=False)]
    if len(core) > 2 and core[0].text == "the":
        # Answers often leave the article out. In lowercase, the rest may be ordinary words.
        found.append(_pattern(core[1:], name, needs_capitals=True))
    return tuple(pattern for pattern in found if pattern)


def tokens_of(name: str) -> list[Token]:
    """The words of a name, with "&" and "+" as words."""
    return list(_tokens(fold(_unglued(name))))


def _unglued(name: str) -> str:
    """Chinese, Japanese and Korean forms are written next to the name without a space."""
    for form in GLUED:
        if name.startswith(form):
            return f"{form} {name[len(form) :]}"
        if name.endswith(form):
            return f"{name[: -len(form)]} {form}"
    return name


def _tokens(folded: str) -> Iterator[Token]:
    is_apart = False
    for kind, group in groupby(folded, _kind):
        if kind == "word":
            yield Token("".join(group), is_apart)
            is_apart = False
        elif kind == "and":
            yield Token("&", is_apart)
            is_apart = False
        elif kind == "gap":
            is_apart = True


def _kind(letter: str) -> str:
    if is_word(letter):
        return "word"
    if letter in AND:
        return "and"
    return "gap" if letter.isspace() or letter in "-\u2010\u2011\u2013" else "mark"


def without_form(tokens: list[Token]) -> list[Token]:
    """Leaves out legal forms at both ends, unless nothing else would remain."""
    while (shorter := _shorter(tokens)) is not None:
        tokens = shorter
    return tokens


def _shorter(tokens: list[Token]) -> list[Token] | None:
    texts = [token.text for token in tokens]
    for length in range(min(5, len(texts) - 1), 0, -1):
        if _is_form(texts[-length:]) and _significant(texts[:-length]):
            return tokens[:-length]
    if len(texts) > 1 and texts[0] in LEADING:
        return tokens[1:]
    if texts[-1:] and texts[-1] in WEAK_FORMS and len(_significant(texts[:-1])) >= 2:
        return tokens[:-1]
    return tokens[:-1] if texts[-1:] == ["&"] and len(texts) > 1 else None


def _is_form(texts: list[str]) -> bool:
    if len(texts) == 1:
        return texts[0] in FORMS
    return tuple(texts) in PHRASES or (
        all(len(text) == 1 for text in texts) and "".join(texts) in FORMS
    )


def _significant(texts: list[str]) -> list[str]:
    return [text for text in texts if text not in ARTICLES and text != "&"]


def _pattern(tokens: list[Token], name: str, *, needs_capitals: bool) -> NamePattern | None:
    if sum(len(token.text) for token in tokens if token.text != "&") < SHORTEST:
        return None
    parts = [_word(tokens[0])]
    for before, token in pairwise(tokens):
        is_loose = not token.is_apart or "&" in (before.text, token.text)
        parts += [_LOOSE if is_loose else _GAP, _word(token)]
    # "Apples’" is a possessive, and "apples" is not.
    regex = re.compile("".join(parts) + r"(?:s(?='))?")
    return NamePattern(regex, needs_capitals, bool(HOST_LIKE.search(name)))


def _word(token: Token) -> str:
    return r"(?:&|\+|and)" if token.text in AND else re.escape(token.text)
