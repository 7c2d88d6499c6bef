"""Merges many sheets into one schedule."""

from collections.abc import Iterable, Iterator
from typing import Any

from apps.heatsync.codes import is_retriable
from apps.heatsync.models import Result
from apps.heatsync.reader import is_same_name, normalised
from apps.heatsync.reader.headings import stage_of
from apps.heatsync.views import swimmer_of
from batchmill import JobRecord, JobState

# Sorts after every date and time.
LAST = "~"


def results_of(jobs: Iterable[JobRecord]) -> Iterator[tuple[JobRecord, Result]]:
    for job in jobs:
        if job.state is JobState.COMPLETED:
            yield job, Result.model_validate(job.result)


def merged(jobs: list[JobRecord]) -> dict[str, Any]:
    """The response of `GET /api/batch/{id}/results`."""
    results = list(results_of(jobs))
    extracted = [result for _, result in results]
    swimmer, swims = swimmer_of(jobs[0]), schedule(extracted)
    return {
        "success": True,
        "swimmerName": swimmer,
        "totalEvents": len(swims),
        "sources": [source(job, result) for job, result in results],
        "events": swims,
        "warnings": [*name_warnings(swimmer, extracted), *warnings(extracted)],
        "failedSources": [failed(job) for job in jobs if job.state is JobState.FAILED],
    }


def schedule(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Sorted by date, time and event.

    A swim that is on two sheets appears once, with the fields of both.
    """
    swims: dict[tuple[Any, ...], dict[str, Any]] = {}
    for result in results:
        meet = result.extraction.meet_name
        for swim in result.extraction.events:
            data = {**swim.model_dump(by_alias=True, mode="json"), "meetName": meet}
            known = swims.setdefault(place_of(data), data)
            known |= {name: data[name] for name in data if known[name] is None}
    return sorted(_without_unseeded(swims.values()), key=_order)


def place_of(swim: dict[str, Any]) -> tuple[Any, ...]:
    """Identifies a swim. A final can have the same heat, lane and day as its prelim."""
    names = ("meetName", "sessionDate", "eventNumber", "heatNumber", "lane")
    return (*(swim[name] for name in names), stage_of(swim["round"]))


def _without_unseeded(swims: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Leaves out swims of a psych sheet, which has no heats, if another sheet has the heat."""
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


def name_warnings(swimmer: str, results: Iterable[Result]) -> Iterator[str]:
    """A family name alone may match different swimmers in different sheets."""
    names = swimmers_in(results)
    if len(names) > 1:
        yield (
            f'"{swimmer}" matches different swimmers on these sheets: {" and ".join(names)}. '
            "Enter the full name to see only one of them."
        )


def swimmers_in(results: Iterable[Result]) -> list[str]:
    """Names without duplicates, in any spelling. Age and team may change between meets."""
    names: list[str] = []
    for result in results:
        for swim in result.extraction.events:
            name = swim.swimmer_name or result.extraction.swimmer_name
            if not any(_is_same_swimmer(name, known) for known in names):
                names.append(name)
    return names


def _is_same_swimmer(name: str, other: str) -> bool:
    return normalised(name) == normalised(other) or is_same_name(name, other)


def warnings(results: Iterable[Result]) -> list[str]:
    """Without duplicates, because sheets of one meet often have the same problems."""
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
