"""Which times a transcript that a user gives may have."""

import math

# Subtitles often end a little after the recording. A later start means that they belong to another
# recording.
TOLERANCE = 1.0


def problem_with(start: float, end: float, duration: float) -> str | None:
    if not (math.isfinite(start) and math.isfinite(end)):
        return "a time must be a number of seconds."
    if start < 0:
        return "a time must not be negative."
    if end < start:
        return f"it ends at {end:.3f} s, before it begins at {start:.3f} s."
    if start > duration + TOLERANCE:
        return f"it begins at {start:.3f} s, but the recording ends at {duration:.3f} s."
    return None


def within(start: float, end: float, duration: float) -> tuple[float, float]:
    """The time without the part after the end of the recording."""
    return min(start, duration), min(end, duration)
