"""Reads a sheet's text with a model at any OpenAI-compatible endpoint.

The model's answer is not trusted: a swim counts only if the sheet's own text contains it.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from typing import NamedTuple

from apps.heatsync.models import Extraction
from apps.heatsync.reader import (
    Swim,
    SwimmerNotFound,
    clock,
    find_swims,
    normalised,
)
from apps.heatsync.settings import AiSettings
from batchmill import Job, ModelClient

LONGEST_TEXT = 400_000
EVENT = re.compile(r"(?:\bEvent\s+|#)(\d+[A-Z]?)\b", re.IGNORECASE)
HEAT = re.compile(r"\bHeat\s+(\d+)\b", re.IGNORECASE)
TIME = re.compile(r"\b(\d{1,2}):(\d{2})\s*([AP]M)?\b", re.IGNORECASE)
DAY = re.compile(r"\b(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])/(\d{4})\b")
INSTRUCTIONS = (
    "You read swimming heat sheets. Given the text of one sheet and a swimmer's name, list every "
    "entry of that swimmer, and of relays that name the swimmer. Copy names, numbers and times as "
    "they are printed; never guess. Use null where the sheet says nothing."
)


def client_of(settings: AiSettings) -> ModelClient:
    return ModelClient(
        settings.base_url,
        settings.model,
        api_key=settings.api_key,
        output=settings.output,
        options={"temperature": 0},
    )


async def read_with_model(
    text: str, swimmer: str, model: ModelClient, job: Job | None = None
) -> Extraction:
    """Sends one request. If it fails, the queue retries the job."""
    question = f"Swimmer: {swimmer}\n\nSheet:\n{text[:LONGEST_TEXT]}"
    answer = await model.ask(Extraction, question, instructions=INSTRUCTIONS, job=job)
    return verified(answer.value, text, swimmer)


def verified(extraction: Extraction, text: str, swimmer: str) -> Extraction:
    """Keeps only the swims that the text confirms, and adds a warning about the others."""
    lines, of_swimmer = text.splitlines(), find_swims(extraction.events, swimmer)
    entries = [(swim, heading_of(swim, lines)) for swim in extraction.events]
    confirmed = [
        with_confirmed_times(swim, heading, text)
        for swim, heading in entries
        if heading and swim in of_swimmer
    ]
    if not confirmed:
        raise SwimmerNotFound(f"{swimmer} is not on this sheet.")
    warnings = list(extraction.warnings)
    if doubtful := len(entries) - len(confirmed):
        warnings.append(
            f"{doubtful} of the AI model's entries are not on the sheet and were left out."
        )
    if len(text) > LONGEST_TEXT:
        warnings.append("The sheet is too long for the AI model, which read only the beginning.")
    return extraction.model_copy(update={"events": confirmed, "warnings": warnings})


class Heading(NamedTuple):
    """The lines with the event and the heat of an entry."""

    event: str
    heat: str


def heading_of(swim: Swim, lines: list[str]) -> Heading | None:
    """Finds a line with the swimmer's name, lane, team and seed time, and returns its heading.

    The event and the heat of the heading must be those of the swim.
    """
    for at, line in enumerate(lines):
        above = lines[: at + 1]
        heading = Heading(last(EVENT, above), last(HEAT, above))
        if has_entry(line, swim) and is_heading_of(heading, swim):
            return heading
    return None


def has_entry(line: str, swim: Swim) -> bool:
    team = "" if swim.relay else swim.team or ""
    names = set(normalised(f"{swim.swimmer_name} {team}").split())
    wanted = {str(part) for part in (swim.lane, swim.seed_time) if part is not None}
    has_rest = bool(wanted) and wanted <= set(line.split())
    return names <= set(normalised(line).split()) and (swim.relay or has_rest)


def is_heading_of(heading: Heading, swim: Swim) -> bool:
    event, heat = EVENT.search(heading.event), HEAT.search(heading.heat)
    return (
        event is not None
        and event[1] == swim.event_number
        and normalised(swim.event_name) in normalised(heading.event)
        and (swim.heat_number is None or (heat is not None and int(heat[1]) == swim.heat_number))
    )


def with_confirmed_times(swim: Swim, heading: Heading, text: str) -> Swim:
    """Removes a time or a day that is not in the sheet."""
    times = {clock(*time) for time in TIME.findall(heading.heat)} - {None}
    days = list(days_in(text))
    is_known_day = bool(days and swim.session_date and min(days) <= swim.session_date <= max(days))
    return swim.model_copy(
        update={
            "heat_start_time": swim.heat_start_time if swim.heat_start_time in times else None,
            "session_date": swim.session_date if is_known_day else None,
        }
    )


def days_in(text: str) -> Iterator[date]:
    for month, day, year in DAY.findall(text):
        # Skips dates that do not exist, such as 2/31.
        with suppress(ValueError):
            yield date(int(year), int(month), int(day))


def last(heading: re.Pattern[str], lines: list[str]) -> str:
    """The last line that matches, or an empty string."""
    return next((line for line in reversed(lines) if heading.search(line)), "")
