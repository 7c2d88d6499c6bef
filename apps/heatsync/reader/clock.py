"""Times of the day."""


def clock(hour: str, minute: str, half: str | None) -> str | None:
    """Converts to HH:MM in 24-hour format. None if there is no such time of day, such as 25:06.

    12 AM is midnight. In countries with the 24-hour format, MEET MANAGER prints 16:05 PM.
    """
    hours, half = int(hour), (half or "").upper()[:1]
    if half == "A" and hours == 12:
        hours = 0
    elif half == "P" and hours < 12:
        hours += 12
    is_time = hours < (12 if half == "A" else 24) and int(minute) < 60
    return f"{hours:02}:{minute}" if is_time else None
