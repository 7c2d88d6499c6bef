"""The data that phases pass on, and the report. JSON uses camelCase names."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Syntax = Literal["json-ld", "microdata", "rdfa", "opengraph"]
# Where on a page a fact was found.
Method = Literal["json-ld", "microdata", "rdfa", "opengraph", "meta", "title", "heading", "text"]
PageOutcome = Literal[
    "read",
    "duplicate",
    "not_html",
    "disallowed",
    "off_site",
    "too_large",
    "too_slow",
    "trap",
    "failed",
]
CheckState = Literal["pass", "warn", "fail", "unknown"]


class Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class Heading(Model):
    level: int
    text: str


class Image(Model):
    """`alt` is None if the attribute is absent. An empty one marks a decoration."""

    url: str
    alt: str | None


class StructuredItem(Model):
    """One thing that a page describes for machines. `types` are names without their vocabulary,
    such as `LocalBusiness`. `data` is a JSON object, with nested things inside."""

    syntax: Syntax
    types: list[str]
    data: dict[str, Any]


class PageContent(Model):
    """What an HTML page says. All addresses are absolute. `text` is what a reader without scripts
    sees. `contacts` are the `tel:` and `mailto:` addresses of its links. `problems` are sentences
    about what could not be read, such as invalid JSON-LD."""

    url: str
    canonical: str | None = None
    language: str | None = None
    alternates: dict[str, str] = Field(default_factory=dict)
    title: str | None = None
    description: str | None = None
    keywords: list[str] = Field(default_factory=list)
    headings: list[Heading] = Field(default_factory=list)
    text: str = ""
    links: list[str] = Field(default_factory=list)
    contacts: list[str] = Field(default_factory=list)
    images: list[Image] = Field(default_factory=list)
    structured: list[StructuredItem] = Field(default_factory=list)
    scripts: int = 0
    is_indexed: bool = True
    follows_links: bool = True
    problems: list[str] = Field(default_factory=list)


class CrawledPage(Model):
    """One address and what came of it. `reason` is a sentence, for every outcome except `read`.
    `code` is the code of the error, if there was one."""

    url: str
    outcome: PageOutcome
    depth: int
    status: int | None = None
    bytes: int = 0
    seconds: float = 0.0
    reason: str | None = None
    code: str | None = None
    duplicate_of: str | None = None
    content: PageContent | None = None


class RobotsRules(Model):
    """`state` is what reading robots.txt gave. `ai_crawlers` says for each known AI crawler whether
    it may read the start page."""

    state: Literal["read", "absent", "unavailable"]
    url: str
    reason: str | None = None
    crawl_delay: float | None = None
    sitemaps: list[str] = Field(default_factory=list)
    ai_crawlers: dict[str, bool] = Field(default_factory=dict)


class TextFile(Model):
    url: str
    text: str


class Crawl(Model):
    """The pages of one site. The first one is the start page, and it was read. `stopped_by` names
    the limit that ended the crawl before all known pages were read."""

    site: str
    pages: list[CrawledPage]
    robots: RobotsRules
    sitemap: str | None = None
    llms_txt: TextFile | None = None
    stopped_by: Literal["pages", "bytes", "time"] | None = None
    seconds: float = 0.0


class Fact(Model):
    """`words` are on the page, to the letter, and `value` was made from them. If they are several
    values of structured data, each has a line of its own."""

    value: str
    page: str
    words: str
    method: Method


class Contact(Model):
    emails: list[Fact] = Field(default_factory=list)
    phones: list[Fact] = Field(default_factory=list)
    address: Fact | None = None


class Facts(Model):
    """What a website says about its business. Unknown is None or empty, never a guess. `industry`
    is a phrase such as `coffee shop`; `location` is a place such as `Portland, OR`."""

    business_name: Fact | None = None
    industry: Fact | None = None
    location: Fact | None = None
    description: Fact | None = None
    keywords: list[Fact] = Field(default_factory=list)
    opening_hours: list[Fact] = Field(default_factory=list)
    contact: Contact = Contact()


class Check(Model):
    """One local check of a site. `weight` is 1 to 10: how much it matters. `fix` says what to do;
    it is None if the check passed. `pages` are those to which the reason applies."""

    id: str
    title: str
    state: CheckState
    weight: int
    reason: str
    fix: str | None = None
    pages: list[str] = Field(default_factory=list)


class Prompt(Model):
    """A question for models. A generic one never names the business; the direct one does. `facts`
    names the facts that it was made from, such as `industry`."""

    id: str
    text: str
    kind: Literal["generic", "direct"]
    facts: list[str] = Field(default_factory=list)
