"""Amounts that attempts use: tokens, seconds, pages, money."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from enum import StrEnum
from typing import Any, TypedDict
from uuid import UUID

from batchmill.domain.task import Task
from batchmill.errors import InvalidInput

# An attempt may use this many different names, and this much of each.
MOST_NAMES = 20
MOST = Decimal(10**15)
# Decimal places that are kept.
PLACES = 12

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,99}")
_STEP = Decimal(1).scaleb(-PLACES)
# Enough digits for every sum. The context of the calling thread may have fewer.
_EXACT = Context(prec=40)

Amount = int | float | Decimal


class UsageGroup(StrEnum):
    """What totals can be grouped by."""

    DAY = "day"
    TENANT = "tenant"
    TASK = "task"


class Usage:
    """What one attempt has used so far, by name."""

    def __init__(self) -> None:
        self.amounts: dict[str, Decimal] = {}

    def add(self, name: str, amount: Amount) -> None:
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f'"{name[:100]}" is not a valid name of an amount. Use up to 100 letters, digits '
                "and _ . : / -, beginning with a letter or a digit."
            )
        total = _EXACT.add(self.amounts.get(name, Decimal()), exact(amount))
        if total > MOST:
            raise InvalidInput(f"An attempt may use up to {MOST:,} {name}, not {total:,}.")
        if name not in self.amounts and len(self.amounts) == MOST_NAMES:
            raise InvalidInput(
                f'An attempt may use up to {MOST_NAMES} names of amounts, so "{name}" is refused.'
            )
        self.amounts[name] = total


def exact(amount: Amount) -> Decimal:
    """Converts an amount without binary rounding: 0.1 is one tenth. Keeps `PLACES` places."""
    if not isinstance(amount, int | float | Decimal) or isinstance(amount, bool):
        raise InvalidInput(f"An amount must be a number, not {type(amount).__name__}.")
    value = Decimal(float.__repr__(amount) if isinstance(amount, float) else amount)
    if not value.is_finite() or not 0 <= value <= MOST:
        raise InvalidInput(f"An amount must be from 0 to {MOST:,}, not {value:.6g}.")
    return value if _places(value) <= PLACES else value.quantize(_STEP, context=_EXACT)


def _places(value: Decimal) -> int:
    return -int(value.as_tuple().exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    """A total. `day`, `tenant` and `task` are None unless the totals are grouped by them."""

    day: date | None
    tenant: str | None
    task: str | None
    name: str
    amount: Decimal


class UsageFilter(TypedDict, total=False):
    """Selects what to add up: the last 30 days by default, or one batch. `since` and `until` are
    days in UTC, and both are included."""

    by: Collection[str]
    since: date | None
    until: date | None
    tenant: str | None
    task: Task[..., Any] | str | None
    batch: UUID | str | None


def check_groups(which: UsageFilter) -> list[str]:
    by = which.get("by", ())
    if isinstance(by, str) or not set(by) <= set(UsageGroup):
        raise InvalidInput(f"`by` must be a list of {', '.join(UsageGroup)}, not {by!r}.")
    if which.get("batch") and ("day" in by or which.get("since") or which.get("until")):
        raise InvalidInput("The usage of a batch is not stored by day. Leave out the days.")
    return list(map(str, by))
