"""The report of a run. JSON uses camelCase names."""

from pydantic import Field

from apps.sites.answers import ModelAnalysis
from apps.sites.models import Check, Facts, Model, PageOutcome, Prompt, RobotsRules


class PageLine(Model):
    """A page of the website, without its text."""

    url: str
    outcome: PageOutcome
    status: int | None = None
    title: str | None = None
    words: int = 0
    bytes: int = 0
    seconds: float = 0.0
    reason: str | None = None
    code: str | None = None
    duplicate_of: str | None = None


class Website(Model):
    """What the website itself says, before any model is asked."""

    site: str
    facts: Facts
    checks: list[Check]
    pages: list[PageLine]
    robots: RobotsRules
    sitemap: str | None = None
    has_llms_txt: bool = False
    stopped_by: str | None = None
    seconds: float = 0.0


class Report(Model):
    """`website` is what the site says, and `model_analysis` how answers mention the business."""

    url: str
    website: Website
    prompts: list[Prompt] = Field(default_factory=list)
    model_analysis: ModelAnalysis
