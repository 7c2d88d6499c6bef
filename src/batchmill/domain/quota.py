"""The quota of a tenant, and how much of it is used."""

from dataclasses import dataclass
from datetime import datetime

from batchmill.errors import InvalidInput

# The defaults for tenants without their own values. Must match the SQL function `quota_of`.
SCHEDULES = 100
SCHEDULE_SECONDS = 60.0
WEBHOOKS = 100

LARGEST_COUNT = 2**31 - 1
# The smallest and the largest value of each field.
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
    """None means no limit. The tenant `*` stands for all tenants without their own quota. The
    limits on schedules and webhooks also apply to tenants without any quota."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """What a tenant has stored, and the jobs that it has submitted on this day, with their limits;
    None means no limit. `operations` starts at 0 again at `resets_at`, and is counted only if the
    tenant has a quota on jobs. If the tenant is in a group, the storage is that of the tenant or of
    the group, whichever has less room."""

    stored_bytes: int
    storage_bytes: int | None
    operations: int
    operations_per_day: int | None
    resets_at: datetime
