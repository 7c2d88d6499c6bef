"""What the generic prompts of a business are about, in words that a prompt can contain."""

from dataclasses import dataclass

from apps.sites.answers.patterns import BusinessNames, tokens_of
from apps.sites.models import Facts
from apps.sites.prompts.location import written_place
from apps.sites.prompts.quoting import quoted
from apps.sites.prompts.vocabulary import KIND_WORDS, Kind, kind_of
from apps.sites.prompts.weekdays import open_days

LONGEST_INDUSTRY = 60
LONGEST_KEYWORD = 40
LONGEST_DESCRIPTION = 160
MOST_KEYWORDS = 2
# Without an industry, prompts consist of little else.
MOST_KEYWORDS_ALONE = 4


@dataclass(frozen=True, slots=True)
class Subject:
    """`one` and `many` name the kind of business. `industry` is a quotation, if the kind is not
    known. `place` is empty, or begins with " in ". `day` is a day of the weekend on which the
    business is open."""

    one: str | None
    many: str | None
    industry: str | None
    place: str
    keywords: tuple[str, ...]
    day: str | None
    description: str | None


def subject_of(facts: Facts, names: BusinessNames) -> Subject:
    kind = kind_of(facts.industry.value) if facts.industry else None
    is_known = kind is not None and kind.name is not None
    industry = facts.industry.value if facts.industry and kind and not is_known else ""
    most = MOST_KEYWORDS if kind else MOST_KEYWORDS_ALONE
    return Subject(
        one=kind.name if kind else None,
        many=kind.plural if kind else None,
        industry=quoted(industry, LONGEST_INDUSTRY),
        place=_place(facts, kind),
        keywords=_keywords(facts, names)[:most],
        day=_day(facts),
        description=_description(facts),
    )


def _place(facts: Facts, kind: Kind | None) -> str:
    """The location matters for local businesses. If the kind does not decide it, a business with
    opening hours is one that customers visit."""
    is_local = kind.is_local if kind else None
    if is_local is None:
        is_local = bool(facts.opening_hours)
    place = written_place(facts.location.value) if facts.location and is_local else None
    return f" in {place}" if place else ""


def _keywords(facts: Facts, names: BusinessNames) -> tuple[str, ...]:
    """As quotations, in the order of the facts, without those that add nothing."""
    industry = facts.industry.value if facts.industry else ""
    location = facts.location.value if facts.location else ""
    known = KIND_WORDS | _words(industry) | _words(location)
    brand = {word for name in names.names for word in _words(name)} - known
    found: dict[str, str] = {}
    for fact in facts.keywords:
        words = _words(fact.value)
        text = quoted(fact.value, LONGEST_KEYWORD)
        is_new = (
            len("".join(words)) > 1
            and not words <= _words(industry)
            and not words <= _words(location)
        )
        if text and is_new and not words & brand and not _is_label(words, names.domain):
            found.setdefault(" ".join(sorted(words)), text)
    return tuple(found.values())


def _words(text: str) -> set[str]:
    return {token.text for token in tokens_of(text)}


def _is_label(words: set[str], domain: str | None) -> bool:
    """Whether a keyword is the name in the domain, such as `acmebakery`."""
    return len(words) == 1 and domain is not None and words <= set(domain.split("."))


def _day(facts: Facts) -> str | None:
    days = open_days(fact.value for fact in facts.opening_hours)
    if "su" in days:
        return "Sundays"
    return "Saturdays" if "sa" in days else None


def _description(facts: Facts) -> str | None:
    return quoted(facts.description.value, LONGEST_DESCRIPTION) if facts.description else None
