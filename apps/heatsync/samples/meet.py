"""Generates a meet from a seed: swimmers, events, heats and lanes."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

_GIVEN = (
    "Ada", "Anaïs", "Ben", "Chloé", "D'Arcy", "Elif", "Finn", "Greta", "Hugo", "Inès", "Jean-Luc",
    "Kofi", "Lena", "Mary Ann", "Noor", "Ofelia", "Priya", "Quentin", "Rosa", "Sofía", "Tom", "Uma",
)  # fmt: skip
_BEGINNINGS = ("Bal", "Cor", "Dun", "El", "Fen", "Gar", "Hal", "Kes", "Lor", "Mar", "Nor", "Ost")
_ENDINGS = ("berg", "dale", "ez", "ford", "ham", "ini", "kov", "lund", "more", "ska", "ton", "wick")
_FAMILIES = ("{}", "{}", "{}", "O'{}", "Van der {}", "{}-Núñez", "{} Jr.")
_INITIALS = ("", "", " M", " Æ")
_TEAMS = ("ARC-NT", "BLUE", "Coral Reef-FL", "DASH-CA", "Fjord Swim")
_STROKES = ("Freestyle", "Backstroke", "Breaststroke", "Butterfly", "IM")
_AGES = {"10 & Under": 8, "11-12": 11, "13-14": 13, "15-18": 15}
_STANDARDS = (None, None, None, "B", "BB", "AAA")
_COURSES = ("", "", "", "Y", "L", "S")


@dataclass(frozen=True)
class Swimmer:
    name: str
    age: int
    team: str


@dataclass(frozen=True)
class Entry:
    """An entry of a swimmer or of a relay. Without a team, the lane is empty."""

    lane: int
    team: str | None = None
    seed: str | None = None
    standard: str | None = None
    swimmer: Swimmer | None = None
    relay: str | None = None
    legs: tuple[Swimmer, ...] = ()


@dataclass(frozen=True)
class Heat:
    """`start` is a number of minutes since midnight."""

    number: int
    start: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Event:
    number: str
    name: str
    record_holder: Swimmer
    heats: tuple[Heat, ...]

    @property
    def is_relay(self) -> bool:
        return self.name.endswith("Relay")


@dataclass(frozen=True)
class Meet:
    name: str
    first_day: date
    last_day: date
    venue: str
    session: str
    session_day: date
    swimmers: tuple[Swimmer, ...]
    events: tuple[Event, ...]

    @property
    def busiest(self) -> str:
        """The swimmer with the most entries."""
        names = Counter(
            entry.swimmer.name
            for event in self.events
            for heat in event.heats
            for entry in heat.entries
            if entry.swimmer
        )
        return names.most_common(1)[0][0]

    @property
    def relays(self) -> "Meet":
        """The same meet with its relays only."""
        return replace(self, events=tuple(event for event in self.events if event.is_relay))


def make_meet(seed: int, *, events: int = 14) -> Meet:
    rng = random.Random(seed)
    maker = _Maker(rng)
    first = date(2025, 1, 1) + timedelta(days=rng.randrange(365))
    day = first + timedelta(days=rng.randrange(3))
    return Meet(
        name=f"{_town(rng)} Open {first.year}",
        first_day=first,
        last_day=first + timedelta(days=2),
        venue=f"{_town(rng)} Aquatic Center, {maker.lanes} lanes",
        session=f"Session {rng.randint(1, 6)} {day:%A} AM",
        session_day=day,
        swimmers=tuple(swimmer for group in maker.groups.values() for swimmer in group),
        events=tuple(maker.event(number) for number in range(1, events + 1)),
    )


class _Maker:
    def __init__(self, rng: random.Random):
        self.rng = rng
        self.lanes = rng.choice((6, 8, 10))
        self.groups: dict[tuple[str, str], list[Swimmer]] = {}
        self._first_lane = rng.choice((0, 1))
        self._minute = rng.choice((7, 9, 11)) * 60
        names: set[str] = set()
        for who in ("Girls", "Boys"):
            for ages in _AGES:
                swimmers = [self._swimmer(_AGES[ages], names) for _ in range(24)]
                self.groups[who, ages] = swimmers

    def event(self, number: int) -> Event:
        """Every fourth event is a relay."""
        who, ages = self.rng.choice(list(self.groups))
        is_relay = number % 4 == 0
        distance, course = (
            self.rng.choice((50, 100, 200)),
            self.rng.choice(("Yard", "SC Meter")),
        )
        kind = f"{self.rng.choice(('Medley', 'Freestyle'))} Relay"
        stroke = kind if is_relay else self.rng.choice(_STROKES)
        group = self.groups[who, ages]
        make = self._teams if is_relay else self._swimmers
        return Event(
            number=f"{number}{self.rng.choice(('', '', '', 'A', 'S'))}",
            name=f"{who} {ages} {distance} {course} {stroke}",
            record_holder=self.rng.choice(group),
            heats=self._heats(make(group, distance)),
        )

    def _swimmer(self, age: int, names: set[str]) -> Swimmer:
        while True:
            family = self.rng.choice(_FAMILIES).format(_town(self.rng))
            name = f"{family}, {self.rng.choice(_GIVEN)}"
            if name not in names:
                break
        names.add(name)
        name += self.rng.choice(_INITIALS)
        return Swimmer(name, age + self.rng.randrange(2), self.rng.choice(_TEAMS))

    def _swimmers(self, group: Sequence[Swimmer], distance: int) -> list[Entry]:
        entered = self.rng.sample(group, self.rng.randint(3, len(group)))
        return [
            Entry(
                lane=0,
                team=swimmer.team,
                seed=self._seed(distance),
                standard=self.rng.choice(_STANDARDS),
                swimmer=swimmer,
            )
            for swimmer in entered
        ]

    def _teams(self, group: Sequence[Swimmer], distance: int) -> list[Entry]:
        entries = []
        for team in _TEAMS:
            legs = [swimmer for swimmer in group if swimmer.team == team]
            for letter in "ABC"[: self.rng.randint(1, 3)]:
                four, legs = tuple(legs[:4]), legs[4:]
                known = four if len(four) == 4 else ()
                entry = Entry(0, team, self._seed(distance), relay=letter, legs=known)
                entries.append(entry)
        return entries

    def _seed(self, distance: int) -> str:
        if self.rng.random() < 0.1:
            return self.rng.choice(("NT", "NS", "NP"))
        seconds = distance * self.rng.uniform(0.5, 0.9)
        minutes, rest = divmod(seconds, 60)
        time = f"{minutes:.0f}:{rest:05.2f}" if minutes else f"{rest:.2f}"
        return time + self.rng.choice(_COURSES)

    def _heats(self, entries: Sequence[Entry]) -> tuple[Heat, ...]:
        """Empty lanes are in the first heat."""
        full, rest = divmod(len(entries), self.lanes)
        sizes = [rest] * bool(rest) + [self.lanes] * full
        heats, at = [], 0
        for number, size in enumerate(sizes, start=1):
            heats.append(self._heat(number, entries[at : at + size]))
            at += size
        return tuple(heats)

    def _heat(self, number: int, entries: Sequence[Entry]) -> Heat:
        self._minute += self.rng.randint(1, 4)
        lanes = range(self._first_lane, self._first_lane + self.lanes)
        taken = sorted(self.rng.sample(lanes, len(entries)))
        placed = {
            lane: replace(entry, lane=lane) for lane, entry in zip(taken, entries, strict=True)
        }
        return Heat(number, self._minute, tuple(placed.get(lane, Entry(lane)) for lane in lanes))


def _town(rng: random.Random) -> str:
    return rng.choice(_BEGINNINGS) + rng.choice(_ENDINGS)
