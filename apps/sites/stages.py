"""What phases pass on, and the result of a run."""

from typing import Annotated

from pydantic import Field

from apps.sites.models import Facts, Model, Prompt
from apps.sites.prompts import GivenPrompt
from batchmill import Artifact

LONGEST_URL = 2_000


class Order(Model):
    """A run as it was requested. Without `prompts`, they are formed from the facts. Without `asks`,
    the run ends when its prompts are formed."""

    url: Annotated[str, Field(min_length=1, max_length=LONGEST_URL)]
    prompts: list[GivenPrompt] | None = None
    asks: bool = True


class AnalysedSite(Model):
    """After the website was read. `website` is the file with its pages, facts and checks."""

    order: Order
    site: str
    facts: Facts
    website: Artifact


class FormedPrompts(Model):
    """Before models are asked."""

    site: AnalysedSite
    prompts: list[Prompt]


class RunResult(Model):
    """What lists show, and the file with the report. `score` is None if no model was asked."""

    site: str
    business_name: str | None
    score: float | None
    model_analysis: str
    pages: int
    report: Artifact
