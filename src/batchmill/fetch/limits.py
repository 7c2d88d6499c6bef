"""The limits for what one response may use."""

from dataclasses import dataclass, fields

from batchmill.errors import InvalidInput

MIB = 1 << 20
MAY_BE_ZERO = ("redirects", "pace")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """`size` limits the bytes of the body after decompression, `wire` the bytes received, and
    `ratio` the first divided by the second. `headers` limits the bytes of headers, and `redirects`
    how many are followed.

    `total` limits the seconds of waiting for servers, over all redirects; the caller's own time
    between chunks does not count. `lookup` limits the seconds to resolve a name, `connect` the
    seconds to connect, and `read` the seconds between two reads. Once a response has begun, it must
    bring `pace` bytes a second on average over `grace` seconds; 0 turns this off.
    """

    size: int = 100 * MIB
    wire: int = 100 * MIB
    ratio: float = 100.0
    headers: int = 64 * 1024
    redirects: int = 5
    total: float = 120.0
    lookup: float = 5.0
    connect: float = 10.0
    read: float = 30.0
    pace: float = 1_000.0
    grace: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in MAY_BE_ZERO and not value >= 0:
                raise InvalidInput(
                    f"The {field.name} of a fetch must be at least 0, not {value!r}."
                )
            if field.name not in MAY_BE_ZERO and not value > 0:
                raise InvalidInput(
                    f"The {field.name} of a fetch must be greater than 0, not {value!r}."
                )
