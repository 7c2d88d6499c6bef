"""The sample sheets of the demo."""

import pytest

from apps.heatsync.reader import InvalidPdf, find_swims, read_sheet
from apps.heatsync.samples import make_meet, samples


def test_the_same_seed_makes_the_same_files():
    assert samples(3) == samples(3)
    assert samples(3) != samples(4)


def test_all_samples_except_the_truncated_one_can_be_read():
    files = samples()
    with pytest.raises(InvalidPdf, match="incomplete"):
        read_sheet(files.pop("truncated.pdf"))
    sheets = {name: read_sheet(pdf) for name, pdf in files.items()}
    assert {sheet.meet_name for sheet in sheets.values()} == {make_meet(1).name}
    assert all(swim.relay for swim in sheets["relays.pdf"].swims)
    counts = {len(sheets[f"{count}.pdf"].swims) for count in ("one-column", "two-columns")}
    assert counts == {len(sheets["three-columns.pdf"].swims)}


def test_a_swimmer_has_at_least_three_swims():
    swims = read_sheet(samples()["two-columns.pdf"]).swims
    found = [
        find_swims(swims, name) for name in {swim.swimmer_name or "?" for swim in swims} - {"?"}
    ]
    assert max(len(swims) for swims in found) >= 3
