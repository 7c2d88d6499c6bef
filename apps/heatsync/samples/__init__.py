"""Heat sheets of meets that never were, drawn as MEET MANAGER draws them.

A seed makes up a meet, and a layout draws it. The reader must give back what was made up, so the
same sheets show the application and test it.
"""

from apps.heatsync.samples.draw import Layout, draw
from apps.heatsync.samples.meet import Meet, make_meet

__all__ = ["Layout", "Meet", "draw", "make_meet", "samples"]


def samples(seed: int = 1) -> dict[str, bytes]:
    """PDFs by the names of their files, all of one meet. One of them cannot be read."""
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
