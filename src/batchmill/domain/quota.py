"""What a tenant may use."""

from dataclasses import dataclass

from batchmill.errors import InvalidInput

LARGEST = {"storage_bytes": 2**63 - 1}
LARGEST_COUNT = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """None means that there is no bound; the tenant `*` stands for all that have no quota of their
    own."""

    tenant: str
    requests_per_minute: int | None = None
    active_jobs: int | None = None
    operations_per_day: int | None = None
    storage_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "active_jobs", "operations_per_day", "storage_bytes"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= LARGEST.get(name, LARGEST_COUNT):
                raise InvalidInput(f"{name} must be a whole number over 0, not {value}.")
