"""The data of a heat sheet."""

from datetime import date

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """Uses snake_case names in Python and camelCase names in JSON."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class Swim(Model):
    """One swimmer in one lane. A relay has one for each swimmer, or one without a name.

    On a psych sheet there are no heats and lanes. `gender` is the letter beside the age.
    `seed_time` and `standard` are as printed. `heat_start_time` is HH:MM in 24-hour format.
    """

    event_number: str
    event_name: str
    round: str | None = None
    heat_number: int | None = None
    heats_in_event: int | None = None
    lane: int | None = None
    swimmer_name: str | None = None
    age: int | None = None
    gender: str | None = None
    school_year: str | None = None
    team: str | None = None
    seed_time: str | None = None
    standard: str | None = None
    exhibition: bool = False
    heat_start_time: str | None = None
    session_title: str | None = None
    session_date: date | None = None
    relay: bool = False
    relay_letter: str | None = None
    leg: int | None = None


class Sheet(Model):
    """`date_range` is the first and the last day of the meet.

    `warnings` are sentences about everything that is uncertain.
    """

    meet_name: str | None
    date_range: tuple[date, date] | None
    session_title: str | None
    venue: str | None
    warnings: list[str]
    swims: list[Swim]
