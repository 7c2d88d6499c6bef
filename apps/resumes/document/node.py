"""An object of a document and its path. Each method reads one field, under the first of its names
that has a value."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from apps.resumes.document.dates import PartialDate
from apps.resumes.document.parse import MAX_BYTES
from apps.resumes.document.values import (
    as_date,
    as_email,
    as_end,
    as_line,
    as_list,
    as_number,
    as_object,
    as_prose,
    as_texts,
    bounded,
    is_empty,
)

BULLET = re.compile(r"^[•●▪◦‣·*–—-]\s+")
# The commas in "SQL (Postgres, SQLite)" separate nothing.
WORD = re.compile(r"(?:\([^()]*\)|[^,;|\n])+")

T = TypeVar("T")


@dataclass(frozen=True)
class Node:
    """`origins`, which all nodes of a document share, has the parts of the resume that were made,
    each with its node, by the part's id. It is None if nobody asks for unknown fields."""

    value: dict[str, Any]
    path: str
    origins: dict[int, tuple[Any, "Node"]] | None = field(default=None, repr=False)
    _asked: set[str] = field(default_factory=set, init=False, repr=False)

    def made(self, part: T) -> T:
        """Remembers that the part was made from this node. It keeps the part, so that no other
        object gets its id."""
        if self.origins is not None:
            self.origins[id(part)] = (part, self)
        return part

    @property
    def unknown(self) -> dict[str, Any]:
        """The fields that nothing has read, if they were asked for."""
        if self.origins is None:
            return {}
        return {name: value for name, value in self.value.items() if name not in self._asked}

    def text(self, *names: str) -> str | None:
        return self._read(as_line, *names)

    def number(self, *names: str) -> str | None:
        """A text that may be a number, such as a grade or a postal code."""
        return self._read(as_number, *names)

    def prose(self, *names: str) -> str | None:
        return self._read(as_prose, *names) or None

    def image(self, *names: str) -> str | None:
        """Only the size of the document limits a data URL."""
        value, path = self.find(*names)
        return None if value is None else bounded(value, path, MAX_BYTES).strip()

    def date(self, *names: str) -> PartialDate | None:
        return self._read(as_date, *names)

    def end(self, *names: str) -> PartialDate | None:
        return self._read(as_end, *names)

    def email(self, *names: str) -> str | None:
        return self._read(as_email, *names)

    def lines(self, *names: str) -> tuple[str, ...]:
        """A list of texts. A text stands for its lines."""
        value, path = self.find(*names)
        if isinstance(value, str):
            value = as_prose(value, path).split("\n")
        lines = (BULLET.sub("", text) for text in as_texts(value, path))
        return tuple(line for line in lines if line)

    def words(self, *names: str) -> tuple[str, ...]:
        """A list of texts. A text stands for what its commas separate."""
        value, path = self.find(*names)
        if isinstance(value, str):
            value = WORD.findall(as_prose(value, path))
        return tuple(as_texts(value, path))

    def child(self, *names: str) -> "Node":
        value, path = self.find(*names)
        return Node(as_object(value, path), path, self.origins)

    def children(self, *names: str, caption: str | None = None) -> Iterator["Node"]:
        """The entries of a list. With `caption`, a text stands for an entry that has only that."""
        value, path = self.find(*names)
        for index, item in enumerate(as_list(value, path)):
            item = {caption: item} if caption and isinstance(item, str) else item
            place = f"{path}[{index}]"
            yield Node(as_object(item, place), place, self.origins)

    def find(self, *names: str) -> tuple[Any, str]:
        """The value of a field and its path. The value is None if the field is empty."""
        self._asked.update(names)
        name = next((name for name in names if not is_empty(self.value.get(name))), None)
        return self.value.get(name) if name else None, f"{self.path}.{name or names[0]}"

    def _read(self, read: Callable[[Any, str], T], *names: str) -> T | None:
        value, path = self.find(*names)
        return None if value is None else read(value, path)
