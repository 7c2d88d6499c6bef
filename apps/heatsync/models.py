"""The data that stages pass on, and the result. JSON uses camelCase names."""

from datetime import date
from typing import Annotated, Self

from pydantic import Field, model_validator

from apps.heatsync.reader import Model, Swim
from batchmill import Artifact


class Extraction(Model):
    """The swims of one swimmer on one sheet."""

    swimmer_name: str
    meet_name: str | None
    session_date: date | None
    venue: str | None
    events: list[Swim]
    warnings: list[str] = Field(default_factory=list)


class SubmittedSheet(Model):
    """A heat sheet as it was submitted: a file, or the URL of one."""

    swimmer: Annotated[str, Field(min_length=1, max_length=200)]
    filename: Annotated[str, Field(min_length=1, max_length=500)]
    url: Annotated[str, Field(max_length=2_000)] | None = None
    file: Artifact | None = None

    @model_validator(mode="after")
    def has_one_source(self) -> Self:
        if (self.url is None) == (self.file is None):
            raise ValueError("A sheet has either a file or a url.")
        return self


class Sheet(Model):
    """A heat sheet between stages. Each stage adds what the next one needs."""

    swimmer: str
    filename: str
    url: str | None = None
    file: Artifact | None = None
    text: Artifact | None = None
    extraction: Extraction | None = None

    def updated(self, **more: object) -> "Sheet":
        return self.model_copy(update=more)


class Result(Model):
    """The result of a job: an extraction and its share code."""

    result_code: str
    cached: bool
    filename: str
    source_url: str | None
    extraction: Extraction
