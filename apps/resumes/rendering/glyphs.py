"""What is said about characters that no font of this machine can show."""

from collections.abc import Collection

MOST_NAMED = 10


def warning_of(missing: Collection[str]) -> str | None:
    """Names the characters by number, so that the warning contains no text of the document."""
    if not missing:
        return None
    letters = sorted(missing)
    named = ", ".join(f"U+{ord(letter):04X}" for letter in letters[:MOST_NAMED])
    more = len(letters) - MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    if len(letters) == 1:
        return f"No installed font has the character {named}. The PDF shows a box in its place."
    what = f"No installed font has the characters {named}{rest}."
    return f"{what} The PDF shows boxes in their place."
