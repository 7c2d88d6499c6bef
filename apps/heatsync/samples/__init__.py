"""Heat sheets of invented meets, drawn like those of MEET MANAGER.

A seed generates a meet, and a layout draws it. The reader must return the generated data, so the
sheets serve the demo and the tests.
"""

from apps.heatsync.samples.draw import Layout, draw
from apps.heatsync.samples.meet import Meet, make_meet

__all__ = ["Layout", "Meet", "draw", "make_meet", "samples"]


def samples(seed: int = 1) -> dict[str, bytes]:
    """PDFs of one meet, by file name. One of them cannot be read."""
    meet = make_meet(seed)
    whole = draw(meet, Layout(columns=2))
    return {
        "one-column.pdf": draw(meet, Layout(columns=1, shows_starts=True)),
        "two-columns.pdf": whole,
        "three-columns.pdf": draw(meet, Layout(columns=3)),
        "relays.pdf": draw(meet.relays, Layout(columns=2, shows_starts=True)),
        "psych-sheet.pdf": draw(meet, Layout(columns=2, is_psych_sheet=True)),
        "truncated.pdf": whole[: len(whole) // 2],
    }
