"""Spans of time: sorted lists of (start, end) in seconds."""

from collections.abc import Iterable, Sequence

Times = list[tuple[float, float]]


def merged(spans: Iterable[tuple[float, float]], gap: float = 0.0) -> Times:
    """Joins spans that overlap, touch, or have a gap shorter than `gap`."""
    found: Times = []
    for start, end in sorted(spans):
        if found and (start <= found[-1][1] or start - found[-1][1] < gap):
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def total(spans: Iterable[tuple[float, float]]) -> float:
    return sum(end - start for start, end in spans)


def without(spans: Sequence[tuple[float, float]], holes: Sequence[tuple[float, float]]) -> Times:
    """The parts of `spans` outside of `holes`. Both are merged."""
    found: Times = []
    at = 0
    for start, end in spans:
        while at < len(holes) and holes[at][1] <= start:
            at += 1
        following = at
        while following < len(holes) and holes[following][0] < end:
            if start < holes[following][0]:
                found.append((start, holes[following][0]))
            start = max(start, holes[following][1])
            following += 1
        if start < end:
            found.append((start, end))
    return found
