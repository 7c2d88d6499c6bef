"""Computes when a schedule fires, and how it handles missed firings."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice, takewhile
from operator import sub
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from batchmill.errors import InvalidCron

GRACE = timedelta(seconds=60)
MOST_AT_ONCE = 100
DAY = 86_400

_FIELDS = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class Missed(StrEnum):
    """How to handle firings that are more than a minute late."""

    ONCE = "once"
    "Run once now, for all missed firings together."
    SKIP = "skip"
    "Skip missed firings and wait for the next one."
    ALL = "all"
    """Run each of them, the oldest first, at most a hundred at a time."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields, or of six with seconds first, in a time zone.

    When the clocks change, five-field expressions with a fixed minute and hour ("30 2 * * *")
    behave as in Debian's cron. A time that is skipped in spring fires at the first minute after
    the gap. A time that is repeated in autumn fires only the first time. All other expressions
    ("*/15 * * * *", anything with seconds) follow the wall clock: nothing fires in the gap, and
    the repeated hour fires twice. Where clocks change by half an hour (Lord Howe), these
    expressions may skip firings around the change.
    """

    expression: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        _require_timezone(self.timezone)
        _require_expression(self.expression)
        if not _parses(self.expression) or next(self._firings_after(_EPOCH), None) is None:
            raise InvalidCron(f'The cron expression "{self.expression}" never fires.')

    def next_after(self, moment: datetime) -> datetime:
        """Returns the first firing after this moment, in UTC. The moment must be timezone-aware."""
        return next(self._firings_after(moment))

    @property
    def shortest_interval(self) -> float:
        """The smallest number of seconds between two firings, even if they come in bursts. Assumes
        that the schedule fires on consecutive days."""
        parsed = CronSim(self.expression, _EPOCH)
        times = sorted(
            hour * 3_600 + minute * 60 + second
            for hour in parsed.hours
            for minute in parsed.minutes
            for second in parsed.seconds
        )
        return float(min(map(sub, [*times[1:], times[0] + DAY], times)))

    def _firings_after(self, moment: datetime) -> Iterator[datetime]:
        firings = CronSim(self.expression, moment.astimezone(ZoneInfo(self.timezone)))
        instants = (firing.astimezone(UTC) for firing in firings)
        # During the second pass of the repeated hour, cronsim starts with times of the first pass.
        return (instant for instant in instants if instant > moment)


def due(
    cron: Cron, next_at: datetime, now: datetime, missed: Missed = Missed.ONCE
) -> tuple[list[datetime], datetime]:
    """Returns the firings to run now, and the `next_at` to store with them."""
    if next_at > now:
        return [], next_at
    if missed == Missed.ALL:
        firings = list(islice(_firings(cron, next_at, now), MOST_AT_ONCE))
        return firings, cron.next_after(firings[-1])
    firings = _on_time(cron, next_at, now)
    if missed == Missed.ONCE and not firings:
        firings = [next_at]
    return firings, cron.next_after(now)


def _on_time(cron: Cron, next_at: datetime, now: datetime) -> list[datetime]:
    """Returns firings within the grace period. They are late only because checks are periodic."""
    start = now - GRACE
    return list(_firings(cron, next_at if next_at > start else cron.next_after(start), now))


def _firings(cron: Cron, first: datetime, last: datetime) -> Iterator[datetime]:
    return takewhile(lambda firing: firing <= last, _endless(cron, first))


def _endless(cron: Cron, firing: datetime) -> Iterator[datetime]:
    while True:
        yield firing
        firing = cron.next_after(firing)


def _require_timezone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InvalidCron(f'There is no time zone "{name}".') from None


def _require_expression(expression: str) -> None:
    parts = expression.split()
    if len(parts) not in (5, 6):
        raise InvalidCron(
            f'The cron expression "{expression}" has {len(parts)} fields. It needs five '
            "(minute hour day-of-month month day-of-week), or six with seconds first."
        )
    for place, part in enumerate(parts):
        if not _parses(_alone(part, place, len(parts))):
            field = _FIELDS[place - len(parts)]
            raise InvalidCron(
                f'The cron expression "{expression}" has an invalid {field}: "{part}".'
            )


def _alone(part: str, place: int, length: int) -> str:
    """Returns an expression in which all other fields are `*`, so that only this part can fail."""
    return " ".join(part if index == place else "*" for index in range(length))


def _parses(expression: str) -> bool:
    try:
        CronSim(expression, _EPOCH)
    except (CronSimError, ValueError):
        return False
    return True
