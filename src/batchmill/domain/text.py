"""The texts by which callers name things: labels, keys, tenants."""

from batchmill.domain.failure import cut, storable
from batchmill.errors import InvalidInput

LONGEST = 500
SHOWN = 100


def checked_text(name: str, value: str) -> str:
    """Returns the value. The message of the error begins with `name`."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST or storable(value) != value:
        raise InvalidInput(
            f"{name} must be 1 to {LONGEST} characters that Postgres can store, not "
            f"{cut(repr(value), SHOWN)}."
        )
    return value
