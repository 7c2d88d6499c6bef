"""A report → HTML for paper. Computes only.

Everything in a report may come from strangers: pages of a website, and answers of models. Templates
escape all of it.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from apps.sites.answers import AnalysedAnswer, Mention, Score
from apps.sites.models import Check, Fact, Facts
from apps.sites.report.models import Report

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = files("apps.sites.report") / "templates"
TO_IMPROVE = ("fail", "warn")
LONGEST_NAME = 120
LONGEST_WORDS = 300
# All answers together then take seconds to lay out, and not minutes.
LONGEST_TEXT = 8_000
# A word without an end gets places where its line may break.
LONGEST_WORD = re.compile(r"\S{40}(?=\S)")
BREAK = "\u200b"
METHODS = {
    "json-ld": "JSON-LD",
    "microdata": "microdata",
    "rdfa": "RDFa",
    "opengraph": "Open Graph",
    "meta": "meta tag",
    "title": "title",
    "heading": "heading",
    "text": "text",
}
OUTCOMES = {
    "read": "Read",
    "duplicate": "Same as another page",
    "not_html": "Not HTML",
    "disallowed": "Not allowed by robots.txt",
    "off_site": "On another site",
    "too_large": "Too large",
    "too_slow": "Too slow",
    "trap": "Endless addresses",
    "failed": "Failed",
}
STATES = {"pass": "Passed", "warn": "Improve", "fail": "Fix", "unknown": "Unknown"}
STOPS = {"pages": "number of pages", "bytes": "number of bytes", "time": "time"}
SKIPPED = {
    "skipped: not_configured": (
        "No model is configured on this server, so none was asked. The other sections are complete."
    ),
    "skipped: not_asked": (
        "The questions have not been asked yet. The other sections are complete."
    ),
}


class Part(NamedTuple):
    """A piece of an answer."""

    text: str
    is_mention: bool


class Source(NamedTuple):
    """Facts with the same page and method, in the order of the page."""

    page: str
    method: str
    facts: list[Fact]


class FactLine(NamedTuple):
    label: str
    sources: list[Source]


def html_of(report: Report, at: datetime) -> str:
    """`at` is when the run ended."""
    return environment().get_template("report.html").render(view_of(report, at))


def view_of(report: Report, at: datetime) -> dict[str, Any]:
    website, analysis = report.website, report.model_analysis
    name = website.facts.business_name
    return {
        "report": report,
        "website": website,
        "analysis": analysis,
        "name": cut(name.value if name else host_of(website.site), LONGEST_NAME),
        "at": at,
        "facts": list(fact_lines(website.facts)),
        "to_improve": checks_with(website.checks, TO_IMPROVE),
        "passed": checks_with(website.checks, ("pass",)),
        "unknown": checks_with(website.checks, ("unknown",)),
        "answers": answers_by_prompt(analysis.answers),
        "failures": {
            (each.provider, failure.prompt): failure
            for each in analysis.providers
            for failure in each.failures
        },
        "texts": {prompt.id: prompt.text for prompt in report.prompts},
        "skipped": SKIPPED.get(analysis.state),
        "pages_read": sum(page.outcome == "read" for page in website.pages),
    }


def checks_with(checks: Sequence[Check], states: Sequence[str]) -> list[Check]:
    found = [check for check in checks if check.state in states]
    return sorted(found, key=lambda check: -check.weight)


def fact_lines(facts: Facts) -> Iterator[FactLine]:
    contact = facts.contact
    lines = {
        "Name": facts.business_name,
        "Industry": facts.industry,
        "Location": facts.location,
        "Description": facts.description,
        "Keywords": facts.keywords,
        "Opening hours": facts.opening_hours,
        "Address": contact.address,
        "Telephone": contact.phones,
        "E-mail": contact.emails,
    }
    for label, found in lines.items():
        several = found if isinstance(found, list) else [found] if found else []
        yield FactLine(label, sources_of(several))


def sources_of(facts: Sequence[Fact]) -> list[Source]:
    groups = groupby(facts, key=lambda fact: (fact.page, fact.method))
    return [Source(page, method, list(found)) for (page, method), found in groups]


def answers_by_prompt(
    answers: Sequence[AnalysedAnswer],
) -> dict[str, dict[str, AnalysedAnswer]]:
    found: dict[str, dict[str, AnalysedAnswer]] = {}
    for each in answers:
        found.setdefault(each.answer.prompt, {})[each.answer.provider] = each
    return found


def parts_of(text: str, mentions: Sequence[Mention]) -> list[Part]:
    """The text of an answer, split at its mentions. A very long one ends early."""
    text = cut(text, LONGEST_TEXT)
    parts, done = list[Part](), 0
    for mention in sorted(mentions, key=lambda each: each.start):
        if mention.start < done:
            continue
        parts.append(Part(text[done : mention.start], is_mention=False))
        parts.append(Part(text[mention.start : mention.end], is_mention=True))
        done = mention.end
    parts.append(Part(text[done:], is_mention=False))
    return [part for part in parts if part.text]


def formula(score: Score) -> str:
    return (
        f"0.5 × {score.position:.4f} + 0.3 × {score.visibility:.4f} "
        f"+ 0.2 × {score.mentions:.4f} = {score.value:.4f}"
    )


def host_of(url: str) -> str:
    return urlsplit(url).netloc or url


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def quoted(words: str) -> str:
    """The words of a fact in one line. Values of structured data have a line each."""
    return cut(" · ".join(words.splitlines()), LONGEST_WORDS)


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + " …"


def breakable(value: Any) -> Any:
    """What a template inserts, so that no text can make the layout take minutes."""
    from markupsafe import Markup

    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return LONGEST_WORD.sub(lambda found: found[0] + BREAK, cut(value, LONGEST_TEXT))


@cache
def environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(str(TEMPLATES)),
        autoescape=True,
        finalize=breakable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Templates do not change while this process runs.
        auto_reload=False,
    )
    made.filters |= {"formula": formula, "host": host_of, "path": path_of, "quoted": quoted}
    made.globals |= {
        "parts_of": parts_of,
        "METHODS": METHODS,
        "OUTCOMES": OUTCOMES,
        "STATES": STATES,
        "STOPS": STOPS,
    }
    return made
