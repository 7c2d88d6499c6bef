"""The bodies of requests."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from apps.sites.mill import settings
from apps.sites.prompts import GivenPrompt
from apps.sites.schedule import MONTHLY
from apps.sites.stages import LONGEST_URL

Address = Annotated[str, Field(min_length=1, max_length=LONGEST_URL)]


class Body(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class NewRuns(Body):
    """`prompts` replace those that would be formed. With `ask` false, the runs end before models
    are asked, so that the prompts can be edited first."""

    urls: Annotated[list[Address], Field(min_length=1, max_length=settings.max_urls)]
    prompts: list[GivenPrompt] | None = None
    ask: bool = True


class RepeatedRun(Body):
    """Without `prompts`, those of the earlier run are used."""

    prompts: list[GivenPrompt] | None = None
    ask: bool = True


class NewSchedule(Body):
    cron: Annotated[str, Field(max_length=100)] = MONTHLY
    timezone: Annotated[str, Field(max_length=100)] = "UTC"


class SignIn(Body):
    key: str
