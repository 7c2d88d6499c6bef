"""Dates and periods as people write them: "May 2014 – present"."""

from apps.resumes.document import PartialDate

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def month_of(date: PartialDate) -> str:
    """The day says little in a resume, so it is left out."""
    if date.month is None:
        return str(date.year)
    return f"{MONTHS[date.month - 1]} {date.year}"


def period_of(start: PartialDate | None, end: PartialDate | None) -> str | None:
    match start, end:
        case None, None:
            return None
        case None, PartialDate():
            return f"until {month_of(end)}"
        case PartialDate(), None:
            return f"{month_of(start)} – present"
        case PartialDate(), PartialDate() if month_of(start) == month_of(end):
            return month_of(start)
        case PartialDate(), PartialDate():
            return f"{month_of(start)} – {month_of(end)}"
