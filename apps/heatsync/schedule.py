"""One schedule out of many sheets."""

from collections.abc import Iterable, Iterator
from typing import Any

from apps.heatsync.codes import is_retriable
from apps.heatsync.models import Result
from apps.heatsync.reader import is_same_name, normalised
from apps.heatsync.reader.headings import stage_of
from apps.heatsync.views import swimmer_of
from batchmill import JobRecord, JobState

# After all that have a date or a time.
LAST = "~"


def results_of(jobs: Iterable[JobRecord]) -> Iterator[tuple[JobRecord, Result]]:
    for job in jobs:
        if job.state is JobState.COMPLETED:
            yield job, Result.model_validate(job.result)


def merged(jobs: list[JobRecord]) -> dict[str, Any]:
    """What `GET /api/batch/:id/results` answers."""
    results = list(results_of(jobs))
    found = [result for _, result in results]
    swimmer, swims = swimmer_of(jobs[0]), schedule(found)
    return {
        "success": True,
        "swimmerName": swimmer,
        "totalEvents": len(swims),
        "sources": [source(job, result) for job, result in results],
        "events": swims,
        "warnings": [*doubts(swimmer, found), *warnings(found)],
        "failedSources": [failed(job) for job in jobs if job.state is JobState.FAILED],
    }


def schedule(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Sorted by date, time and event. What two sheets both have is one swim, with what either of
    them says of it."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for result in results:
        meet = result.extraction.meet_name
        for swim in result.extraction.events:
            told = {**swim.model_dump(by_alias=True, mode="json"), "meetName": meet}
            known = found.setdefault(place_of(told), told)
            known |= {name: told[name] for name in told if known[name] is None}
    return sorted(_seeded(found.values()), key=_order)


def place_of(swim: dict[str, Any]) -> tuple[Any, ...]:
    """Where and when someone swims. A final may well have the prelim's heat, lane and day."""
    names = ("meetName", "sessionDate", "eventNumber", "heatNumber", "lane")
    return (*(swim[name] for name in names), stage_of(swim["round"]))


def _seeded(swims: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A psych sheet knows no heats: what it says is left out where another sheet says more."""
    swims = list(swims)
    heats = {(swim["meetName"], swim["eventNumber"]) for swim in swims if swim["heatNumber"]}
    for swim in swims:
        if swim["heatNumber"] or (swim["meetName"], swim["eventNumber"]) not in heats:
            yield swim


def _order(swim: dict[str, Any]) -> tuple[Any, ...]:
    number = "".join(filter(str.isdecimal, swim["eventNumber"]))
    return (
        swim["sessionDate"] or LAST,
        swim["heatStartTime"] or LAST,
        int(number or 0),
        swim["eventNumber"],
        swim["heatNumber"] or 0,
    )


def doubts(swimmer: str, results: Iterable[Result]) -> Iterator[str]:
    """A family name alone may be one child's in one sheet, and another's in the next."""
    names = swimmers_in(results)
    if len(names) > 1:
        yield (
            f'"{swimmer}" fits different swimmers in these sheets: {" and ".join(names)}; '
            "give the whole name for the schedule of one."
        )


def swimmers_in(results: Iterable[Result]) -> list[str]:
    """Each once, however the sheets write the name; age and team may change between meets."""
    found: list[str] = []
    for result in results:
        for swim in result.extraction.events:
            name = swim.swimmer_name or result.extraction.swimmer_name
            if not any(_is_one(name, known) for known in found):
                found.append(name)
    return found


def _is_one(name: str, other: str) -> bool:
    return normalised(name) == normalised(other) or is_same_name(name, other)


def warnings(results: Iterable[Result]) -> list[str]:
    """Each once: sheets of one meet are often doubtful in the same way."""
    return list(
        dict.fromkeys(
            f"{result.filename}: {text}"
            for result in results
            for text in result.extraction.warnings
        )
    )


def source(job: JobRecord, result: Result) -> dict[str, Any]:
    extraction = result.extraction
    return {
        "sequence": job.position + 1,
        "filename": result.filename,
        "sourceUrl": result.source_url,
        "meetName": extraction.meet_name,
        "sessionDate": extraction.session_date,
        "venue": extraction.venue,
        "eventCount": len(extraction.events),
        "resultCode": result.result_code,
    }


def failed(job: JobRecord) -> dict[str, Any]:
    assert job.error is not None
    return {
        "sequence": job.position + 1,
        "filename": job.payload["filename"],
        "errorMessage": job.error.message,
        "retriable": is_retriable(job.error.code),
    }
