"""Words for numbers in reasons."""

from collections.abc import Collection

from apps.sites.models import CheckState


def count(number: int, noun: str) -> str:
    """`1 page`, `3 pages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def part(some: Collection[object], all_: Collection[object], noun: str = "page") -> str:
    """`2 of 5 pages`."""
    return f"{len(some):,} of {count(len(all_), noun)}"


def state_of(bad: Collection[object], all_: Collection[object]) -> CheckState:
    """A failure if half of them or more are bad."""
    if not bad:
        return "pass"
    return "fail" if 2 * len(bad) >= len(all_) else "warn"
