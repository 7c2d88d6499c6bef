"""Lines → entries. Reads the sheet line by line.

    event ──► notes: records, standards ──► heat ──► lanes ──► heat … ──► event …
      └─────► ranks, on a psych sheet         └────► relay teams, each with its swimmers

Lines that are not understood are kept for a warning, and never guessed.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from apps.heatsync.reader.entry import Entry, read_relay, read_swimmer
from apps.heatsync.reader.headings import (
    EventHeading,
    HeatHeading,
    event_heading,
    heat_heading,
    is_like_event,
    is_like_heat,
    is_note,
    is_relay,
    legs_in,
    rest_of_name,
    round_heading,
    share_of,
    stage_of,
    start_heading,
)
from apps.heatsync.reader.page import Line
from apps.heatsync.reader.relay import read_legs
from apps.heatsync.reader.table_header import TableHeader


@dataclass(slots=True, eq=False)
class Event:
    """`round` is the last one that was named."""

    number: str
    name: str
    round: str | None = None


@dataclass(slots=True, eq=False)
class Heat:
    """`of` is the number of heats, if it is printed.

    `invalid_start`: the printed start, if it is not a time of day. `is_implied`: only a round is
    printed above the lanes, without a heading of a heat.
    """

    event: Event
    number: int
    round: str | None
    letter: str | None = None
    is_implied: bool = False
    of: int | None = None
    start: str | None = None
    invalid_start: str | None = None

    @property
    def stage(self) -> str:
        return stage_of(self.round)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """An entry with its event and heat. On a psych sheet there is no heat."""

    event: Event
    heat: Heat | None
    entry: Entry
    is_relay: bool
    session: str | None


@dataclass(slots=True)
class Program:
    is_psych_sheet: bool
    places: list[Place] = field(default_factory=list)
    heats: list[Heat] = field(default_factory=list)
    with_alternates: list[Event] = field(default_factory=list)
    not_understood: list[Line] = field(default_factory=list)


class ProgramReader:
    """Takes one line after the other, and keeps track of the current event and heat."""

    def __init__(self, *, is_psych_sheet: bool):
        self.program = Program(is_psych_sheet)
        self._events: dict[str, Event] = {}
        self._stages: dict[tuple[Event, str], list[Heat]] = defaultdict(list)
        # For swimmers and for relays. A column without a header uses that of the column before.
        self._headers: dict[bool, TableHeader] = {}
        self._event: Event | None = None
        # The heading of two events that alternate.
        self._pair: Event | None = None
        self._heat: Heat | None = None
        self._team: Entry | None = None
        self._is_relay = False
        self._in_notes = True
        self._in_alternates = False
        self._unfinished: Event | None = None
        # A round that was named, with no heat after it so far.
        self._round: str | None = None

    def read(self, lines: Iterable[Line], session: str | None) -> None:
        for line in lines:
            if not (self._heading(line) or self._listed(line, session) or is_note(line.text)):
                self.program.not_understood.append(line)
                self._end_section(line)

    def _heading(self, line: Line) -> bool:
        text, unfinished = line.text, self._unfinished
        self._unfinished = None
        if line.header:
            self._header(line.header)
        elif event := event_heading(text):
            self._open_event(event)
        elif heat := heat_heading(text):
            return self._open_heat(heat)
        elif unfinished and (rest := rest_of_name(text)):
            self._extend_name(unfinished, rest)
        elif self._event and (round := round_heading(text)):
            self._open_round(self._event, round)
        elif self._heat and (start := start_heading(text)):
            self._heat.start = start
        elif self._event and text.casefold().startswith("alternate"):
            self._in_alternates = True
            self.program.with_alternates.append(self._event)
        else:
            return False
        return True

    def _end_section(self, line: Line) -> None:
        """Lines after a heading that is not understood do not belong to the previous heading."""
        if self._is_other_event(line):
            self._event = None
        if self._event is None or is_like_heat(line.text):
            self._heat, self._round, self._in_notes = None, None, True
        if self._heat is None or line.words[0].text.isdecimal():
            self._team = None

    def _is_other_event(self, line: Line) -> bool:
        return is_like_event(line.text, self._event.number if self._event else None)

    def _header(self, header: TableHeader) -> None:
        self._headers[header.is_relay] = header
        self._is_relay = self._is_relay or (self._in_notes and header.is_relay)
        self._in_notes = self._event is None

    def _find_event(self, heading: EventHeading) -> Event:
        """Returns the known event, unless its number now has another name."""
        event = self._events.get(heading.number)
        if event and heading.name.startswith(event.name):
            # The name was cut off before, in a narrow column.
            event.name = heading.name
        elif event is None or not (heading.continues or event.name.startswith(heading.name)):
            event = self._events[heading.number] = Event(heading.number, heading.name)
        return event

    def _open_event(self, heading: EventHeading) -> None:
        event = self._find_event(heading)
        if event is not self._event:
            self._event, self._heat, self._team, self._round = event, None, None, None
            self._is_relay = is_relay(event.name)
            self._in_notes = True
        self._pair = event if "/" in event.number else None
        self._in_alternates = False
        self._unfinished = event

    def _open_heat(self, heading: HeatHeading) -> bool:
        if heading.event:
            self._open_event(heading.event)
        if heading.share:
            self._open_share(heading.share)
        if self._event is None:
            return False
        self._heat = self._find_heat(self._event, heading)
        self._heat.of = self._heat.of or heading.of
        self._heat.is_implied = self._heat.is_implied or heading.is_implied
        self._round = None
        self._heat.start = self._heat.start or heading.start
        self._heat.invalid_start = self._heat.invalid_start or heading.invalid_start
        self._in_notes = self._in_alternates = False
        self._unfinished = self._event if heading.is_unfinished else None
        return True

    def _open_round(self, event: Event, round: str) -> None:
        """A round may also be printed below its heat."""
        event.round = self._round = round
        heat = self._heat
        if heat and heat.round and (heat.is_implied or heat.stage != stage_of(round)):
            self._heat = None

    def _open_share(self, share: str) -> None:
        pair = self._pair
        mine = share_of(pair.number, pair.name, share) if pair else None
        if mine:
            self._open_event(mine)
            self._pair = pair
        else:
            self._event = None

    def _imply_heat(self) -> None:
        """An event with one heat may have only a round as its heading."""
        if self._round and self._heat is None and not self.program.is_psych_sheet:
            self._open_heat(HeatHeading(round=self._round, is_implied=True))

    def _find_heat(self, event: Event, heading: HeatHeading) -> Heat:
        """Returns the known heat, if it continues in another column."""
        event.round = heading.round or event.round
        heats = self._stages[event, stage_of(event.round)]
        for heat in heats:
            if (heat.number, heat.letter) == (heading.number, heading.letter):
                return heat
            if heading.number is None and heat.round == event.round:
                return heat
        # Finals with letters are numbered in the order in which they are printed.
        number = len(heats) + 1 if heading.number is None else heading.number
        heats.append(Heat(event, number, event.round, heading.letter))
        self.program.heats.append(heats[-1])
        return heats[-1]

    def _extend_name(self, event: Event, rest: str) -> None:
        if not event.name.endswith(rest):
            event.name = f"{event.name} {rest}"
        self._is_relay = self._is_relay or is_relay(rest)

    def _listed(self, line: Line, session: str | None) -> bool:
        """Reads lanes, swimmers of relays, and notes, which are ignored."""
        if self._is_other_event(line):
            return False
        if self._in_alternates:
            return True
        entry = self._entry(line)
        if entry and entry.number is not None and not entry.is_empty:
            self._imply_heat()
        if self._event is None or (self._in_notes and not self.program.is_psych_sheet):
            return entry is None or entry.number is None
        event = self._event
        return self._add_legs(line, event) or self._add(entry, event, session) or self._in_notes

    def _entry(self, line: Line) -> Entry | None:
        read = read_relay if self._is_relay else read_swimmer
        return read(line.words, self._headers.get(self._is_relay))

    def _add_legs(self, line: Line, event: Event) -> bool:
        """Swimmers listed after the last leg are alternates, and are left out."""
        legs = read_legs(line.words, len(self._team.legs)) if self._team else None
        if self._team is None or legs is None:
            return False
        last = legs_in(event.name)
        self._team.legs |= {leg: who for leg, who in legs.items() if leg <= last}
        if any(leg > last for leg in legs):
            self.program.with_alternates.append(event)
        return True

    def _add(self, entry: Entry | None, event: Event, session: str | None) -> bool:
        if entry is None or (entry.number is None and (self._heat or self._in_notes)):
            return False
        if not entry.is_empty:
            self._team = entry if self._is_relay else None
            place = Place(event, self._heat, entry, self._is_relay, session)
            self.program.places.append(place)
        return True
