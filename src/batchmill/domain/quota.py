"""What a tenant may use."""

from dataclasses import dataclass

from batchmill.errors import InvalidInput

# What a tenant may have unless its quota says otherwise. The SQL function `quota_of` has the same.
SCHEDULES = 100
SCHEDULE_SECONDS = 60.0
WEBHOOKS = 100

LARGEST_COUNT = 2**31 - 1
# The smallest and the largest value of each.
RANGES: dict[str, tuple[int, int]] = {
    "requests_per_minute": (1, LARGEST_COUNT),
    "active_jobs": (1, LARGEST_COUNT),
    "operations_per_day": (1, LARGEST_COUNT),
    "storage_bytes": (1, 2**63 - 1),
    "schedules": (0, LARGEST_COUNT),
    "schedule_seconds": (1, 366 * 86_400),
    "webhooks": (0, LARGEST_COUNT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """None means that there is no bound; the tenant `*` stands for all that have no quota of their
    own. The bounds on schedules and webhooks hold for tenants without any quota too."""

    tenant: str
    requests_per_minute: int | None = None
    active_jobs: int | None = None
    operations_per_day: int | None = None
    storage_bytes: int | None = None
    schedules: int = SCHEDULES
    schedule_seconds: float = SCHEDULE_SECONDS
    webhooks: int = WEBHOOKS

    def __post_init__(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise InvalidInput(f"{name} must be from {least:,} to {most:,}, not {value}.")
