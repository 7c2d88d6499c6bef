"""Values of a document, read leniently where their meaning is clear, or refused with their path."""

from collections.abc import Iterator
from typing import Any

from apps.resumes.document.dates import PartialDate, date_of, is_present
from apps.resumes.document.errors import InvalidDocument
from apps.resumes.document.link import is_email
from apps.resumes.document.text import one_line, tidy

MAX_LINE = 2_000
MAX_PROSE = 20_000
MAX_ITEMS = 500
# Longer numbers are neither grades nor years, and Python refuses to print very long ones.
MAX_NUMBER = 10**20
# Where the text is, if an object stands in a list of texts.
CAPTIONS = ("name", "title", "text", "summary", "description")


def is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not tidy(value))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def bounded(value: Any, path: str, limit: int) -> str:
    if not isinstance(value, str):
        raise InvalidDocument(path, "It must be a string.")
    if len(value) > limit:
        raise InvalidDocument(path, f"It has more than {limit:,} characters.")
    return value


def as_line(value: Any, path: str) -> str:
    return one_line(bounded(value, path, MAX_LINE))


def as_prose(value: Any, path: str) -> str:
    """A text that may have several paragraphs. A list stands for them."""
    if isinstance(value, list):
        return bounded("\n".join(as_texts(value, path)), path, MAX_PROSE)
    return tidy(bounded(value, path, MAX_PROSE))


def as_number(value: Any, path: str) -> str:
    """A text that programs also write as a number."""
    if is_number(value) and abs(value) < MAX_NUMBER:
        return str(value)
    return as_line(value, path)


def as_date(value: Any, path: str) -> PartialDate:
    # YAML turns 2014.10 into 2014.1.
    found = None if isinstance(value, float) else date_of(as_number(value, path))
    if found is None:
        raise InvalidDocument(path, "It is not a date such as 2014, 2014-05 or 2014-05-01.")
    return found


def as_end(value: Any, path: str) -> PartialDate | None:
    """The end of a period. JSON Resume writes "present" by leaving it out."""
    if isinstance(value, str) and is_present(one_line(value)):
        return None
    return as_date(value, path)


def as_email(value: Any, path: str) -> str:
    address = as_line(value, path).removeprefix("mailto:")
    if not is_email(address):
        raise InvalidDocument(path, "It is not an e-mail address.")
    return address


def as_object(value: Any, path: str) -> dict[str, Any]:
    # PHP writes an empty object as an empty list.
    if is_empty(value) or value == []:
        return {}
    if not isinstance(value, dict):
        raise InvalidDocument(path, "It must be an object.")
    return value


def as_list(value: Any, path: str) -> list[Any]:
    if is_empty(value):
        return []
    if not isinstance(value, list):
        raise InvalidDocument(path, "It must be a list.")
    if len(value) > MAX_ITEMS:
        raise InvalidDocument(path, f"It has more than {MAX_ITEMS} entries.")
    return value


def as_texts(value: Any, path: str) -> Iterator[str]:
    """The texts of a list, without the empty ones."""
    for index, item in enumerate(as_list(value, path)):
        item = caption_of(item) if isinstance(item, dict) else item
        if not is_empty(item):
            yield item_text(item, f"{path}[{index}]")


def item_text(item: Any, path: str) -> str:
    return as_number(item, path) if is_number(item) else tidy(bounded(item, path, MAX_PROSE))


def caption_of(item: dict[str, Any]) -> Any:
    return next((item[name] for name in CAPTIONS if not is_empty(item.get(name))), None)
