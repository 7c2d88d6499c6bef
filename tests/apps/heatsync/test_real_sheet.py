"""A real sheet, compared with checked rows. It may not be copied into this repository."""

import json
import time
from pathlib import Path

import pytest

from apps.heatsync.reader import Sheet, Swim, read_sheet

NAME = "hytek_2col_50events_pseudonymised"
FIELDS = {
    "event": "event_number",
    "eventName": "event_name",
    "heat": "heat_number",
    "lane": "lane",
    "name": "swimmer_name",
    "age": "age",
    "gender": "gender",
    "team": "team",
    "seed": "seed_time",
    "standard": "standard",
}


@pytest.fixture(scope="module")
def folder() -> Path:
    for parent in Path(__file__).resolve().parents:
        folder = parent / "shared" / "fixtures" / "heatsheets"
        if (folder / f"{NAME}.pdf").exists():
            return folder
    pytest.skip("The real heat sheet is not available.")


@pytest.fixture(scope="module")
def sheet(folder: Path) -> Sheet:
    return read_sheet(folder / f"{NAME}.pdf")


def test_exactly_the_expected_rows_are_read(sheet: Sheet, folder: Path):
    rows = json.loads((folder / f"{NAME}.golden.json").read_text())
    expected = [tuple(_text(row[field]) for field in FIELDS) for row in rows]
    found = [_row(swim) for swim in sheet.swims if not swim.relay]
    assert len(expected) == 550
    assert sorted(found) == sorted(expected)
    assert sheet.warnings == []


def test_relays_have_their_teams(sheet: Sheet):
    relays = [swim for swim in sheet.swims if swim.relay]
    assert {swim.event_number for swim in relays} == {"27", "28", "49", "50"}
    assert len(relays) == 24
    assert all(swim.team and swim.seed_time and swim.relay_letter == "A" for swim in relays)


def test_a_sheet_is_read_within_two_seconds(folder: Path):
    """Measures processor time, which does not depend on other load."""
    start = time.process_time()
    read_sheet(folder / f"{NAME}.pdf")
    assert time.process_time() - start < 2


def _row(swim: Swim) -> tuple[str, ...]:
    return tuple(_text(getattr(swim, field)) for field in FIELDS.values())


def _text(value: object) -> str:
    return "" if value is None else str(value)
