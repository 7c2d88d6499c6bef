"""Draws a meet as a PDF, in one to three columns."""

from dataclasses import dataclass

from apps.heatsync.samples.meet import Entry, Event, Heat, Meet
from apps.heatsync.samples.paper import Paper

_SWIMMERS = {"lane": "Lane", "name": "Name", "age": "Age", "team": "Team", "seed": "Seed Time"}
_RELAYS = {"lane": "Lane", "name": "Team", "relay": "Relay", "seed": "Seed Time"}

Fields = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """`splits_heats`: a heat may continue in the next column, with its heading repeated."""

    columns: int
    shows_starts: bool = False
    splits_heats: bool = False
    is_psych_sheet: bool = False


def draw(meet: Meet, layout: Layout) -> bytes:
    sheet = _Drawing(meet, layout)
    for event in meet.events:
        if layout.is_psych_sheet:
            sheet.ranks(event)
        else:
            sheet.heats(event)
    return sheet.paper.finish()


class _Drawing:
    def __init__(self, meet: Meet, layout: Layout):
        self._layout = layout
        # With three columns there is no room for labels above every event.
        self._is_narrow = layout.columns == 3
        labels = self._labels(_SWIMMERS) if self._is_narrow else None
        self.paper = Paper(_head(meet, layout), layout.columns, labels)

    def heats(self, event: Event) -> None:
        first = self._blocks(event.heats[0])
        self.paper.reserve(5 + self._height(first))
        self._title(event)
        for heat in event.heats:
            blocks = self._blocks(heat)
            continues = self.paper.reserve(1 + self._height(blocks))
            self._heading(event, heat, continues=continues)
            for block in blocks:
                if self.paper.reserve(len(block)):
                    self._heading(event, heat, continues=True)
                for fields in block:
                    self.paper.row(fields)

    def ranks(self, event: Event) -> None:
        entries = [entry for heat in event.heats for entry in heat.entries if entry.team]
        self.paper.reserve(6)
        self._title(event)
        for rank, entry in enumerate(entries, start=1):
            if self.paper.reserve(1):
                self.paper.line(f"Event {event.number}  ...({event.name})", bold=True)
            self.paper.row({**_fields(entry), "lane": str(rank)})

    def _title(self, event: Event) -> None:
        if self._is_narrow:
            self.paper.line(f"#{event.number} {event.name}", bold=True)
        else:
            self.paper.line(f"Event  {event.number}   {event.name}", bold=True)
            self.paper.line(f"    LEAGUE:  1:04.17   8/15/2019   {event.record_holder.name}")
            self.paper.line("    1:20.00   BB")
        if event.is_relay or not self._is_narrow:
            self.paper.row(self._labels(_RELAYS if event.is_relay else _SWIMMERS), bold=True)

    def _heading(self, event: Event, heat: Heat, *, continues: bool) -> None:
        of = "" if continues else f" of {len(event.heats)}"
        start = f"   Starts at {_clock(heat.start)}" if self._layout.shows_starts else ""
        within = f"   (#{event.number} {event.name})" if continues else ""
        self.paper.line(f"Heat  {heat.number}{of}   Finals{start}{within}", bold=True)

    def _height(self, blocks: list[list[Fields]]) -> int:
        """The number of rows that must fit into the column together."""
        return len(blocks[0]) if self._layout.splits_heats else sum(map(len, blocks))

    def _blocks(self, heat: Heat) -> list[list[Fields]]:
        """Rows that stay together: an entry, with the swimmers of a relay below it."""
        return [[_fields(entry), *self._legs(entry)] for entry in heat.entries]

    def _legs(self, entry: Entry) -> list[Fields]:
        legs = [f"{leg}) {who.name} {who.age}" for leg, who in enumerate(entry.legs, start=1)]
        if self._is_narrow:
            return [{"first leg": leg} for leg in legs]
        pairs = zip(legs[::2], legs[1::2], strict=True)
        return [{"first leg": first, "second leg": second} for first, second in pairs]

    def _labels(self, labels: Fields) -> Fields:
        if not self._layout.is_psych_sheet:
            return labels
        return {place: label for place, label in labels.items() if place != "lane"}


def _fields(entry: Entry) -> Fields:
    """In the order in which MEET MANAGER draws them."""
    swimmer = entry.swimmer
    fields = {
        "team": entry.team if swimmer else None,
        "relay": entry.relay,
        "seed": entry.seed,
        "age": str(swimmer.age) if swimmer else None,
        "name": swimmer.name if swimmer else entry.team,
        "standard": entry.standard,
        "lane": str(entry.lane),
    }
    return {place: text for place, text in fields.items() if text is not None}


def _head(meet: Meet, layout: Layout) -> list[str]:
    kind = "Psych Sheet" if layout.is_psych_sheet else "Meet Program"
    first, last = (f"{day.month}/{day.day}/{day.year}" for day in (meet.first_day, meet.last_day))
    return [f"{meet.name} - {first} to {last}", meet.venue, f"{kind} - {meet.session}"]


def _clock(minute: int) -> str:
    hour = minute // 60
    return f"{(hour - 1) % 12 + 1:02}:{minute % 60:02} {'AM' if hour < 12 else 'PM'}"
