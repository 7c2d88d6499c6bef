"""Consistency checks of what was read. Each problem becomes a warning for users.

A line alone does not show that it was assigned to the wrong event. But then another event lacks a
heat, or a lane appears twice.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from apps.heatsync.reader.program import Event, Heat, Place, Program

# The maximum for each kind of warning.
MOST = 20
_LONGEST = 120
_MOST_LANES = 10


def warnings_of(program: Program) -> list[str]:
    checks = (_psych, _implied, _same_number, _missing, _letters, _starts, _twice, _alternates)
    return [
        *(warning for check in checks for warning in few(check(program))),
        *few(_not_understood(program), "rows were not understood"),
    ]


def few(warnings: Iterable[str], more: str = "warnings of this kind were left out") -> list[str]:
    found = list(warnings)
    return found if len(found) <= MOST else [*found[:MOST], f"{len(found) - MOST} more {more}."]


def _psych(program: Program) -> Iterator[str]:
    without = [place for place in program.places if place.heat is None]
    if without and not program.heats:
        if program.is_psych_sheet and _are_ranks(without):
            yield ("This is a psych sheet: it ranks the swimmers, but has no heats and lanes.")
        else:
            yield (
                "The headings of the heats were not understood, so swimmers have no heat and lane."
            )
        return
    for number in dict.fromkeys(place.event.number for place in without):
        yield f"Event {number} has swimmers without a heat and lane."


def _are_ranks(places: Iterable[Place]) -> bool:
    """Ranks never decrease within an event. Lanes do, because each heat starts again."""
    last: dict[Event, int] = defaultdict(int)
    for place in places:
        number = place.entry.number or last[place.event]
        if number < last[place.event]:
            return False
        last[place.event] = number
    return True


def _implied(program: Program) -> Iterator[str]:
    for heat in program.heats:
        if heat.is_implied and not _is_only_heat(heat, program):
            yield (
                f'Event {heat.event.number} has lanes below "{heat.round}" without a heat. '
                f"They are shown as heat {heat.number}."
            )


def _is_only_heat(heat: Heat, program: Program) -> bool:
    """Numbers over `_MOST_LANES` are ranks, not lanes."""
    others = (other for other in program.heats if other is not heat and other.event is heat.event)
    lanes = (place.entry.number or 0 for place in program.places if place.heat is heat)
    return max(lanes, default=0) <= _MOST_LANES and heat.stage not in {
        other.stage for other in others
    }


def _same_number(program: Program) -> Iterator[str]:
    """Checks only events with entries. A list of events before them may use other names."""
    names: dict[str, list[str]] = defaultdict(list)
    for event in dict.fromkeys(place.event for place in program.places):
        names[event.number].append(event.name)
    for number, found in names.items():
        if len(found) > 1:
            yield f"{len(found)} events have the number {number}: {' and '.join(found)}."


def _missing(program: Program) -> Iterator[str]:
    stages: dict[tuple[Event, str], list[Heat]] = defaultdict(list)
    for heat in program.heats:
        stages[heat.event, heat.stage].append(heat)
    for (event, _), heats in stages.items():
        numbers = {heat.number for heat in heats}
        totals = {heat.of for heat in heats if heat.of}
        count = max(totals | numbers)
        if missing := [str(number) for number in range(1, count + 1) if number not in numbers]:
            yield (
                f"Event {event.number} has {count} heats, but these are not on the sheet: "
                f"{_short(', '.join(missing))}."
            )
        if len(totals) > 1 or (totals and max(numbers) > max(totals)):
            yield f"The heats of event {event.number} state different numbers of heats."


def _letters(program: Program) -> Iterator[str]:
    lettered: dict[Event, list[str]] = defaultdict(list)
    for heat in program.heats:
        if heat.letter:
            lettered[heat.event].append(f"{heat.number}{heat.letter}")
    for event, names in lettered.items():
        yield (
            f"Event {event.number} has heats with letters. They are shown without the letter: "
            f"{_short(', '.join(names))}."
        )


def _starts(program: Program) -> Iterator[str]:
    for heat in program.heats:
        if heat.invalid_start:
            yield (
                f"Event {heat.event.number}, heat {heat.number} has no start time: "
                f'"{heat.invalid_start}" is not a time of day.'
            )


def _twice(program: Program) -> Iterator[str]:
    lanes: dict[tuple[Heat, str], list[Place]] = defaultdict(list)
    for place in program.places:
        if place.heat and place.entry.number is not None:
            lane = f"{place.entry.number}{place.entry.half or ''}"
            lanes[place.heat, lane].append(place)
    for (heat, lane), places in lanes.items():
        if len(places) > 1:
            names = " and ".join(_name(place) for place in places)
            where = f"Event {heat.event.number}, heat {heat.number}, lane {lane}"
            yield f"{where} occurs {len(places)} times: {names}."


def _name(place: Place) -> str:
    person = place.entry.person
    return person.name if person else f"{place.entry.team} {place.entry.relay or ''}".strip()


def _alternates(program: Program) -> Iterator[str]:
    for number in dict.fromkeys(event.number for event in program.with_alternates):
        yield f"The alternates of event {number} were left out."


def _not_understood(program: Program) -> Iterator[str]:
    for line in program.not_understood:
        yield f'A row on page {line.page} was not understood: "{_short(line.text)}".'


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
