"""Other businesses that answers to generic questions list."""

from collections.abc import Sequence

from apps.sites.answers.lists import listed_in
from apps.sites.answers.mentions import is_own
from apps.sites.answers.models import AnalysedAnswer, AnswerName, Competitor
from apps.sites.answers.patterns import BusinessNames, name_key

MOST = 50


def competitors_of(answers: Sequence[AnalysedAnswer], names: BusinessNames) -> list[Competitor]:
    """Most often named first, then by name. The same name with another case, with accents or with a
    legal form is one competitor, written as it was first."""
    found: dict[str, tuple[str, list[AnalysedAnswer]]] = {}
    for analysed in answers:
        for listed in listed_in(analysed.answer.text):
            if not is_own(listed.name, names):
                _, naming = found.setdefault(name_key(listed.name), (listed.name, []))
                naming.append(analysed)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1][1]), item[0]))
    return [_competitor(name, naming) for _, (name, naming) in ordered[:MOST]]


def _competitor(name: str, naming: list[AnalysedAnswer]) -> Competitor:
    places = [AnswerName(provider=it.answer.provider, prompt=it.answer.prompt) for it in naming]
    instead = sum(not analysed.mentions for analysed in naming)
    return Competitor(name=name, count=len(naming), instead=instead, answers=places)
