"""Generated meets are drawn and read, and the result equals the generated data."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.heatsync.reader import Swim, read_sheet
from apps.heatsync.reader.page import in_reading_order
from apps.heatsync.reader.pdf import read_pages
from apps.heatsync.samples import Layout, Meet, draw, make_meet
from apps.heatsync.samples.meet import Entry, Event, Heat

# Enough events to fill more than one page.
EVENTS = {1: 4, 2: 12, 3: 18}


@pytest.mark.parametrize("columns", EVENTS)
@settings(max_examples=12)
@given(seed=st.integers(0, 10**9), shows_starts=st.booleans(), splits_heats=st.booleans())
def test_a_meet_program_is_read_back(
    seed: int, columns: int, shows_starts: bool, splits_heats: bool
):
    layout = Layout(columns=columns, shows_starts=shows_starts, splits_heats=splits_heats)
    meet = make_meet(seed, events=EVENTS[columns])
    sheet = read_sheet(draw(meet, layout))
    assert sheet.swims == list(swims_of(meet, layout))
    assert sheet.warnings == []
    assert sheet.meet_name == meet.name
    assert sheet.venue == meet.venue
    assert sheet.session_title == meet.session
    assert sheet.date_range == (meet.first_day, meet.last_day)


@settings(max_examples=8)
@given(seed=st.integers(0, 10**9), columns=st.sampled_from(list(EVENTS)))
def test_a_psych_sheet_is_read_back(seed: int, columns: int):
    layout = Layout(columns=columns, is_psych_sheet=True)
    meet = make_meet(seed, events=EVENTS[columns])
    sheet = read_sheet(draw(meet, layout))
    assert sheet.swims == list(swims_of(meet, layout))
    assert [warning[:24] for warning in sheet.warnings] == ["This is a psych sheet: i"]


@pytest.mark.parametrize("columns", EVENTS)
def test_heats_continue_in_other_columns_and_on_other_pages(columns: int):
    """Ensures that the tests above cover continued heats."""
    meet = make_meet(1, events=2 * EVENTS[columns])
    pages = list(in_reading_order(read_pages(draw(meet, Layout(columns=columns)))))
    lines = [line for page in pages for line in page.lines]
    pages_with = {line.page for line in lines if line.text.startswith("Heat") and "(#" in line.text}
    assert len(pages) > 1
    assert max(pages_with) > 1


def swims_of(meet: Meet, layout: Layout) -> Iterator[Swim]:
    for event in meet.events:
        for heat in event.heats:
            for entry in heat.entries:
                if entry.team:
                    yield from _swims(meet, layout, event, heat, entry)


def _swims(meet: Meet, layout: Layout, event: Event, heat: Heat, entry: Entry) -> Iterator[Swim]:
    swim = Swim(
        event_number=event.number,
        event_name=event.name,
        team=entry.team,
        seed_time=entry.seed,
        standard=entry.standard,
        session_title=meet.session,
        session_date=meet.session_day,
        relay=event.is_relay,
        relay_letter=entry.relay,
    )
    if not layout.is_psych_sheet:
        start = f"{heat.start // 60:02}:{heat.start % 60:02}" if layout.shows_starts else None
        swim = swim.model_copy(
            update={
                "round": "Finals",
                "heat_number": heat.number,
                "heats_in_event": len(event.heats),
                "heat_start_time": start,
                "lane": entry.lane,
            }
        )
    if entry.swimmer:
        name, age = entry.swimmer.name, entry.swimmer.age
        yield swim.model_copy(update={"swimmer_name": name, "age": age})
    elif entry.legs and not layout.is_psych_sheet:
        for leg, who in enumerate(entry.legs, start=1):
            update = {"swimmer_name": who.name, "age": who.age, "leg": leg}
            yield swim.model_copy(update=update)
    else:
        yield swim
