"""Telephone numbers and e-mail addresses."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from urllib.parse import unquote

from apps.sites.facts.business import Source
from apps.sites.facts.pages import own_words
from apps.sites.facts.things import plain, texts_of, things_of
from apps.sites.models import Fact, PageContent

MOST = 5
MOST_PER_PAGE = 50
# Digits, as the International Telecommunication Union allows.
SHORTEST, LONGEST = 7, 15

_EMAIL = re.compile(
    r"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,4}"
    r"[A-Za-z]{2,24}(?![\w-])"
)
_FILES = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|avif|css|js)$", re.IGNORECASE)
_SEPARATED = r"(?:[ .\-/()]{0,3}\d)"
# Forms that nothing else has: with a country code, and as North Americans write them.
_INTERNATIONAL = re.compile(rf"(?<![\w+])\+\d{{1,3}}{_SEPARATED}{{6,13}}(?![\d])")
_AMERICAN = re.compile(
    r"(?<![\w.+-])(?:1[ .-])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[-.])[2-9]\d{2}[-. ]\d{4}(?![\w-])"
)
_LABELLED = re.compile(
    r"(?:\b[tp](?=[:.] )|\b(?:tel|telephone|phone|call(?: us)?|telefon|téléphone|tél|teléfono"
    r"|telefono|telefoon|telefone|mobile|mobil|whatsapp)\b)"
    r"\.?(?: ?(?:no|number|at|on))?\.? ?:?[ \n]?"
    rf"(\+?\(?\d{_SEPARATED}{{6,14}})(?!\d)",
    re.IGNORECASE,
)
_FAX = re.compile(r"fax\W{0,3}$", re.IGNORECASE)


def phones_of(business: list[Source], pages: list[PageContent]) -> list[Fact]:
    own = own_words(pages)
    facts = [*_described(business, "telephone"), *_linked(own, "tel"), *_phones_in(own)]
    return _unique((fact for fact in facts if _is_number(fact.value)), _number_key)


def emails_of(business: list[Source], pages: list[PageContent]) -> list[Fact]:
    own = own_words(pages)
    facts = [*_described(business, "email"), *_linked(own, "mailto"), *_emails_in(own)]
    return _unique((fact for fact in facts if _is_email(fact.value)), str.casefold)


def _described(business: list[Source], name: str) -> Iterator[Fact]:
    for source in business:
        for thing in (source.thing, *things_of(source.thing, "contactPoint")):
            for words in texts_of(thing, name):
                value = re.sub(r"^(?i:tel|mailto):", "", plain(words)).strip()
                yield source.fact(value, words)


def _linked(pages: list[PageContent], scheme: str) -> Iterator[Fact]:
    for page in pages:
        for link in page.contacts:
            kind, _, rest = link.partition(":")
            words = rest.partition("?")[0].partition(";")[0].strip()
            if kind.strip().lower() == scheme and words:
                value = unquote(words).replace("//", "").strip()
                yield Fact(value=value, page=page.url, words=words, method="text")


def _phones_in(pages: list[PageContent]) -> Iterator[Fact]:
    for page in pages:
        found = [
            (match.start(group), match[group].strip())
            for pattern, group in ((_INTERNATIONAL, 0), (_AMERICAN, 0), (_LABELLED, 1))
            for match in islice(pattern.finditer(page.text), MOST_PER_PAGE)
        ]
        for at, words in sorted(found):
            if not _FAX.search(page.text[max(0, at - 12) : at]):
                yield Fact(value=words, page=page.url, words=words, method="text")


def _emails_in(pages: list[PageContent]) -> Iterator[Fact]:
    for page in pages:
        for match in islice(_EMAIL.finditer(page.text), MOST_PER_PAGE):
            yield Fact(value=match[0], page=page.url, words=match[0], method="text")


def _is_number(value: str) -> bool:
    digits = re.sub(r"\D", "", value)
    is_plain = re.fullmatch(r"[\d\s+().,/\-–]+(?:\s*(?i:ext|x)\.?\s*\d{1,5})?", value) is not None
    return is_plain and SHORTEST <= len(digits) <= LONGEST and len(set(digits)) > 1


def _is_email(value: str) -> bool:
    return _EMAIL.fullmatch(value) is not None and not _FILES.search(value)


def _number_key(value: str) -> str:
    """The same with and without the country code."""
    return re.sub(r"\D", "", value)[-9:]


def _unique(facts: Iterable[Fact], key: Callable[[str], str]) -> list[Fact]:
    found: dict[str, Fact] = {}
    for fact in facts:
        found.setdefault(key(fact.value), fact)
    return list(found.values())[:MOST]
