"""Limits on how many jobs run at once, and on how many start in a period."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from batchmill.domain.failure import storable
from batchmill.errors import InvalidLimit

NAME = re.compile(
    r"system|tenant:.+|key:.+|batch:.+"
    r"|(task:[A-Za-z0-9_.-]+|pipeline:[A-Za-z0-9_-]+)(/(tenant|key):.+|/batch:\*)?"
    r"|provider:[^*]+"
)
# The prefix of the limits that handlers enter with `job.limit`.
PROVIDER = "provider:"
LARGEST = 2_147_483_647

Slots = int | Literal["unlimited"]


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `starts` in any window of `period` seconds."""

    starts: int
    period: float = 1.0

    def __post_init__(self) -> None:
        check_count("The starts of a rate", self.starts, at_least=1)
        if not 0 < self.period <= 86_400 * 366:
            raise InvalidLimit(
                "The period of a rate must be greater than 0 seconds and at most 1 year, not "
                f"{self.period!r}."
            )


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that a task or pipeline declares. Operators can override them at run time.

    `total` limits its slots. `per_batch`, `per_tenant` and `per_key` limit the slots of its jobs in
    one batch, tenant or key. `rate` and `key_rate` limit how many jobs may start.
    """

    total: int | None = None
    per_batch: int | None = None
    per_tenant: int | None = None
    per_key: int | None = None
    rate: Rate | None = None
    key_rate: Rate | None = None

    def __post_init__(self) -> None:
        for name in ("total", "per_batch", "per_tenant", "per_key"):
            if (slots := getattr(self, name)) is not None:
                check_count(name, slots)

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Returns the limits by the suffix of their names, as `register_task` expects."""
        return {
            "": _part(self.total, self.rate),
            "/batch:*": _part(self.per_batch, None),
            "/tenant:*": _part(self.per_tenant, None),
            "/key:*": _part(self.per_key, self.key_rate),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderLimit:
    """A limit that handlers enter: at most `slots` attempts at once, and starts at this `rate`."""

    name: str
    slots: int | None
    rate: Rate | None

    def __post_init__(self) -> None:
        check_provider(self.name)
        if self.slots is not None:
            check_count("The slots of a limit", self.slots)
        if self.slots is None and self.rate is None:
            raise InvalidLimit(f'The limit "{self.name}" limits nothing: give slots, rate or both.')

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name} | _part(self.slots, self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRecord:
    """The current value of a limit; None means unlimited. `running` counts jobs, or for a provider
    the attempts that hold a slot. `is_set` is True if an operator overrides the slots or the rate
    that the code declares."""

    name: str
    slots: int | None
    running: int
    rate: int | None
    period: float | None
    paused: bool
    is_set: bool


def check_count(what: str, count: object, at_least: int = 0) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or not at_least <= count <= LARGEST:
        raise InvalidLimit(f"{what} must be a whole number of at least {at_least}, not {count!r}.")


def written_slots(slots: Slots | None) -> int | None:
    """Returns slots as the database stores them. The largest number means no limit."""
    if slots == "unlimited":
        return LARGEST
    if slots is not None:
        check_count("The slots of a limit", slots)
    return slots


def check_name(name: str) -> None:
    if not NAME.fullmatch(name) or storable(name) != name:
        raise InvalidLimit(
            f'"{name}" is not a valid limit name. Use system, task:NAME, pipeline:NAME, '
            "tenant:NAME, batch:ID, key:NAME, task:NAME/tenant:NAME, task:NAME/key:NAME or "
            "provider:NAME. For a separate limit on each one, use tenant:*, batch:*, key:*, "
            "task:NAME/tenant:*, task:NAME/batch:* or task:NAME/key:*. With pipeline: in place of "
            "task:, a limit is shared by all stages."
        )


def check_provider(name: str) -> None:
    if not name.startswith(PROVIDER):
        raise InvalidLimit(
            f'Handlers enter limits with names such as provider:openai, not "{name}". Limits on '
            "jobs are declared with limits=Limits(…) of a task."
        )
    check_name(name)


def _part(slots: int | None, rate: Rate | None) -> dict[str, Any]:
    return {
        "slots": slots,
        "rate": rate.starts if rate else None,
        "period": rate.period if rate else None,
    }
