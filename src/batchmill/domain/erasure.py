"""The erasure of a tenant."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure that is not finished. `age` is the number of seconds since it was requested."""

    tenant: str
    requested_at: datetime
    age: float
