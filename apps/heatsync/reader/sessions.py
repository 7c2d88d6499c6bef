"""The day of each session."""

from collections.abc import Iterable, Iterator
from datetime import date

from apps.heatsync.reader.dates import Calendar


class Sessions:
    """Sessions by title, in the order of the sheet. The title may be missing."""

    def __init__(self, calendar: Calendar | None, titles: Iterable[str | None]):
        self._calendar = calendar
        self._days = {
            title: calendar.day_of(title) if calendar else None for title in dict.fromkeys(titles)
        }

    @property
    def title(self) -> str | None:
        return " / ".join(title for title in self._days if title) or None

    def day(self, title: str | None) -> date | None:
        """The first day of the meet, if the title names no day."""
        return self._days[title] or (self._calendar.first if self._calendar else None)

    def warnings(self) -> Iterator[str]:
        if self._calendar is None:
            yield "The sheet does not state the dates of the meet."
            return
        if not self._calendar.is_certain:
            yield (
                "The dates of the meet are ambiguous. They were read with the month first: "
                f"{self._calendar.first} to {self._calendar.last}."
            )
        for title, day in self._days.items():
            if day is None:
                session = f'"{title}"' if title else "this session"
                yield (
                    f"The sheet does not state the date of {session}. The first day of the "
                    f"meet is assumed: {self._calendar.first}."
                )
