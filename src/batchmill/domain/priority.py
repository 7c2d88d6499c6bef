"""The priority of a job in its lane, or of a task among the tasks of a worker."""

from batchmill.errors import InvalidInput

PRIORITIES = range(-32_768, 32_768)


def checked_priority(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in PRIORITIES:
        raise InvalidInput(f"priority must be from -32768 to 32767, not {value!r}.")
    return value
