"""Makes the questions that a customer might ask about a business.

The same facts always give the same prompts. Generic questions never name the business. Exactly one
direct question does.
"""

from collections.abc import Iterator
from ipaddress import ip_address

from apps.sites.answers import BusinessNames, names_business, names_of
from apps.sites.models import Facts, Prompt
from apps.sites.prompts.quoting import CLOSE, OPEN, cleaned, quoted
from apps.sites.prompts.subject import Subject, subject_of

MOST = 7
LONGEST_NAME = 80


def prompts_of(facts: Facts, site: str) -> list[Prompt]:
    """`site` is the address of the website, or its host."""
    names = names_of(facts, site)
    subject = subject_of(facts, names)
    found = [it for it in _generic(subject) if not names_business(it.text, names)]
    return [*found[: MOST - 1], _direct(facts, names, site, subject.place)]


def _generic(subject: Subject) -> Iterator[Prompt]:
    """The most useful first."""
    if subject.many and subject.one:
        return _of_kind(subject, subject.one, subject.many)
    if subject.industry:
        return _of_industry(subject, subject.industry)
    return _of_keywords(subject)


def _of_kind(subject: Subject, one: str, many: str) -> Iterator[Prompt]:
    place, facts = subject.place, _facts(subject, "industry")
    yield _prompt("best", f"What are good {many}{place}?", facts)
    yield _prompt("recommend", f"Which {one}{place} would you recommend, and why?", facts)
    for number, keyword in enumerate(subject.keywords, 1):
        text = f"Which {many}{place} are known for {keyword}?"
        yield _prompt(f"keyword-{number}", text, [*facts, "keywords"])
    if subject.day and place:
        text = f"Which {many}{place} are open on {subject.day}?"
        yield _prompt("open", text, [*facts, "openingHours"])
    yield _prompt("reputation", f"Which {many}{place} have the best reputation?", facts)
    yield _prompt("compare", f"How do the best-known {many}{place} compare?", facts)


def _of_industry(subject: Subject, industry: str) -> Iterator[Prompt]:
    place, facts = subject.place, _facts(subject, "industry")
    yield _prompt("best", f"What are good businesses{place} for {industry}?", facts)
    text = f"Which business{place} would you recommend for {industry}, and why?"
    yield _prompt("recommend", text, facts)
    for number, keyword in enumerate(subject.keywords, 1):
        text = f"Which businesses{place} offer {keyword}?"
        yield _prompt(f"keyword-{number}", text, [*_facts(subject), "keywords"])
    text = f"Which businesses{place} have the best reputation for {industry}?"
    yield _prompt("reputation", text, facts)
    text = f"How do the best-known businesses{place} for {industry} compare?"
    yield _prompt("compare", text, facts)


def _of_keywords(subject: Subject) -> Iterator[Prompt]:
    place, facts = subject.place, _facts(subject)
    for number, keyword in enumerate(subject.keywords, 1):
        text = f"Which businesses{place} are good for {keyword}?"
        yield _prompt(f"keyword-{number}", text, [*facts, "keywords"])
    if subject.description:
        text = f"Which businesses{place} match this description: {subject.description}?"
        yield _prompt("description", text, [*facts, "description"])


def _direct(facts: Facts, names: BusinessNames, site: str, place: str) -> Prompt:
    name = quoted(facts.business_name.value, LONGEST_NAME) if facts.business_name else None
    host = cleaned(names.domain or site, LONGEST_NAME)
    if name is None:
        about, used = f"the website {_written_host(host)}", []
    elif _is_public(host):
        about, used = f"{name} ({host})", ["businessName"]
    else:
        about, used = f"{name}{place}", ["businessName", *(["location"] if place else [])]
    text = f"What do you know about {about}? Would you recommend it?"
    return Prompt(id="direct", text=text, kind="direct", facts=used)


def _written_host(host: str) -> str:
    """What is no host is quoted, like words of a page."""
    is_host = host and all(letter.isalnum() or letter in ".-:" for letter in host)
    return host if is_host else f"{OPEN}{host}{CLOSE}"


def _is_public(host: str) -> bool:
    """Whether a host means something to others: not an address of a network."""
    try:
        ip_address(host)
    except ValueError:
        return "." in host and _written_host(host) == host
    return False


def _facts(subject: Subject, *names: str) -> list[str]:
    return [*names, *(["location"] if subject.place else [])]


def _prompt(id: str, text: str, facts: list[str]) -> Prompt:
    return Prompt(id=id, text=text, kind="generic", facts=facts)
