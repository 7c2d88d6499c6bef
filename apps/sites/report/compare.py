"""What has changed between two reports of one site. Computes only."""

from collections.abc import Iterator

from apps.sites.answers import Score
from apps.sites.models import Check, Fact, Facts, Model
from apps.sites.report.models import Report

# Facts that a report shows as one value, by their names in JSON.
SINGLE = {
    "businessName": lambda facts: facts.business_name,
    "industry": lambda facts: facts.industry,
    "location": lambda facts: facts.location,
    "description": lambda facts: facts.description,
    "address": lambda facts: facts.contact.address,
}
MANY = {
    "keywords": lambda facts: facts.keywords,
    "openingHours": lambda facts: facts.opening_hours,
    "emails": lambda facts: facts.contact.emails,
    "phones": lambda facts: facts.contact.phones,
}


class ScoreChange(Model):
    """`name` is a provider or a prompt; None means the whole run. `change` is None unless both runs
    have a score."""

    name: str | None = None
    before: float | None
    after: float | None
    change: float | None


class FactChange(Model):
    fact: str
    before: list[str]
    after: list[str]


class CheckChange(Model):
    id: str
    title: str
    before: str | None
    after: str | None


class Comparison(Model):
    """Only what differs, except scores, which are all there."""

    score: ScoreChange
    providers: list[ScoreChange]
    prompts: list[ScoreChange]
    facts: list[FactChange]
    checks: list[CheckChange]
    pages_added: list[str]
    pages_removed: list[str]


def compare(before: Report, after: Report) -> Comparison:
    old, new = before.model_analysis, after.model_analysis
    return Comparison(
        score=change_of(None, old.score, new.score),
        providers=changes(
            {each.provider: each.score for each in old.providers},
            {each.provider: each.score for each in new.providers},
        ),
        prompts=changes(
            {each.prompt: each.score for each in old.prompts},
            {each.prompt: each.score for each in new.prompts},
        ),
        facts=list(changed_facts(before.website.facts, after.website.facts)),
        checks=list(changed_checks(before.website.checks, after.website.checks)),
        pages_added=sorted(pages_of(after) - pages_of(before)),
        pages_removed=sorted(pages_of(before) - pages_of(after)),
    )


def changes(before: dict[str, Score | None], after: dict[str, Score | None]) -> list[ScoreChange]:
    names = dict.fromkeys((*before, *after))
    return [change_of(name, before.get(name), after.get(name)) for name in names]


def change_of(name: str | None, before: Score | None, after: Score | None) -> ScoreChange:
    change = round(after.value - before.value, 4) if before and after else None
    return ScoreChange(
        name=name,
        before=before.value if before else None,
        after=after.value if after else None,
        change=change,
    )


def changed_facts(before: Facts, after: Facts) -> Iterator[FactChange]:
    for name, values in {**SINGLE, **MANY}.items():
        old, new = texts_of(values(before)), texts_of(values(after))
        if old != new:
            yield FactChange(fact=name, before=old, after=new)


def texts_of(found: Fact | list[Fact] | None) -> list[str]:
    several = found if isinstance(found, list) else [found] if found else []
    return [fact.value for fact in several]


def changed_checks(before: list[Check], after: list[Check]) -> Iterator[CheckChange]:
    old, new = {each.id: each for each in before}, {each.id: each for each in after}
    for id in dict.fromkeys((*new, *old)):
        was, now = old.get(id), new.get(id)
        title = (now or was or before[0]).title
        if (was and was.state) != (now and now.state):
            yield CheckChange(id=id, title=title, before=was and was.state, after=now and now.state)


def pages_of(report: Report) -> set[str]:
    return {page.url for page in report.website.pages if page.outcome == "read"}
