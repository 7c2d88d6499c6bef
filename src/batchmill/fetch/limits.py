"""How much of us a server may use up."""

from dataclasses import dataclass, fields

from batchmill.errors import InvalidInput

MIB = 1 << 20
MAY_BE_ZERO = ("redirects", "pace")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """`size` bytes of body as the caller gets it, `wire` bytes as it comes, `ratio` between them;
    `headers` bytes of headers; `redirects` that are followed.

    `total` seconds of waiting for servers, over all redirects; what the caller does between chunks
    does not count. `lookup` seconds to find the addresses of a name, `connect` seconds to connect,
    `read` seconds between two reads. Once it has begun, an answer brings `pace` bytes a second, on
    average over `grace` seconds; with 0 it may be as slow as it likes.
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
                raise InvalidInput(f"The {field.name} of a fetch is at least 0, not {value!r}.")
            if field.name not in MAY_BE_ZERO and not value > 0:
                raise InvalidInput(f"The {field.name} of a fetch must be over 0, not {value!r}.")
