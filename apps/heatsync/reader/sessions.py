"""Which session is on which day."""

from collections.abc import Iterable, Iterator
from datetime import date

from apps.heatsync.reader.dates import Calendar


class Sessions:
    """By their titles, in the order of the sheet. A sheet of one session may have no title."""

    def __init__(self, calendar: Calendar | None, titles: Iterable[str | None]):
        self._calendar = calendar
        self._days = {
            title: calendar.day_of(title) if calendar else None for title in dict.fromkeys(titles)
        }

    @property
    def title(self) -> str | None:
        return " / ".join(title for title in self._days if title) or None

    def day(self, title: str | None) -> date | None:
        """The first day of the meet, if the title does not tell."""
        return self._days[title] or (self._calendar.first if self._calendar else None)

    def warnings(self) -> Iterator[str]:
        if self._calendar is None:
            yield "The sheet does not say on which days the meet is."
            return
        if not self._calendar.is_certain:
            yield (
                "The dates of the meet can be read in two ways. The month was taken to come "
                f"first: {self._calendar.first} to {self._calendar.last}."
            )
        for title, day in self._days.items():
            if day is None:
                session = f'"{title}"' if title else "this session"
                yield (
                    f"The sheet does not say on which day {session} is. It was taken to be the "
                    f"first day of the meet, {self._calendar.first}."
                )
