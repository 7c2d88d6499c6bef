"""Entries of the program → swims."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from apps.heatsync.reader.entry import Person
from apps.heatsync.reader.program import Event, Place, Program
from apps.heatsync.reader.sessions import Sessions
from apps.heatsync.reader.sheet import Swim


def swims_of(program: Program, sessions: Sessions) -> Iterator[Swim]:
    counts = _heats_by_stage(program)
    for place in program.places:
        shared = {
            **_entered(place),
            **_seeded(place, counts),
            "session_title": place.session,
            "session_date": sessions.day(place.session),
        }
        if place.is_relay and place.entry.legs:
            for leg, person in sorted(place.entry.legs.items()):
                yield Swim(**shared, **_who(person), leg=leg)
        else:
            yield Swim(**shared, **_who(place.entry.person))


def _heats_by_stage(program: Program) -> dict[tuple[Event, str], int]:
    """Not every heat has the number of heats, so the highest number of the stage is used."""
    counts: dict[tuple[Event, str], int] = defaultdict(int)
    for heat in program.heats:
        key = heat.event, heat.stage
        counts[key] = max(counts[key], heat.of or heat.number)
    return counts


def _entered(place: Place) -> dict[str, Any]:
    entry = place.entry
    return {
        "event_number": place.event.number,
        "event_name": place.event.name,
        "team": entry.team,
        "seed_time": entry.seed,
        "standard": entry.standard,
        "exhibition": entry.exhibition,
        "relay": place.is_relay,
        "relay_letter": entry.relay,
    }


def _seeded(place: Place, counts: dict[tuple[Event, str], int]) -> dict[str, Any]:
    """Empty for a psych sheet, which has ranks instead of lanes."""
    heat = place.heat
    if heat is None:
        return {}
    return {
        "round": heat.round,
        "heat_number": heat.number,
        "heats_in_event": counts[heat.event, heat.stage],
        "heat_start_time": heat.start,
        "lane": place.entry.number,
    }


def _who(person: Person | None) -> dict[str, Any]:
    if person is None:
        return {}
    return {
        "swimmer_name": person.name,
        "age": person.age,
        "gender": person.gender,
        "school_year": person.school_year,
    }
