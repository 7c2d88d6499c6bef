"""What goes from stage to stage, and what comes out. JSON has camelCase names."""

from datetime import date
from typing import Annotated, Self

from pydantic import Field, model_validator

from apps.heatsync.reader import Model, Swim
from batchmill import Artifact


class Extraction(Model):
    """What one sheet has of one swimmer."""

    swimmer_name: str
    meet_name: str | None
    session_date: date | None
    venue: str | None
    events: list[Swim]
    warnings: list[str] = Field(default_factory=list)


class HandedIn(Model):
    """A heat sheet as a stranger hands it in: a file, or the address of one."""

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
    """A heat sheet on its way: each stage adds what the next one needs."""

    swimmer: str
    filename: str
    url: str | None = None
    file: Artifact | None = None
    text: Artifact | None = None
    extraction: Extraction | None = None

    def but(self, **more: object) -> "Sheet":
        return self.model_copy(update=more)


class Result(Model):
    """What a job makes: an extraction, and the code that it is shared by."""

    result_code: str
    cached: bool
    filename: str
    source_url: str | None
    extraction: Extraction
