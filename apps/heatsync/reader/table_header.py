"""The line of labels above the swimmers.

    Lane  Name              Age  Team        Seed Time
    Lane  Name              Age  LSC  Team   Seed Time
    Lane  Team                   Relay       Seed Time
          Name              Age  Team        Seed Time      (psych sheets)

    Carril  Nombre          Edad Equipo      Tiempo para Sembrado

Fields are aligned left, right or centred below their label, so the extent of a label counts.
"""

from collections.abc import Sequence
from typing import NamedTuple

from apps.heatsync.reader.words import Word, halves

_LABELS = {
    "lane": "lane",
    "name": "name",
    "age": "age",
    "yr": "age",
    "year": "age",
    "gr": "age",
    "grade": "age",
    # Registration numbers are recognised by their form.
    "id": "filler",
    "id#": "filler",
    "lsc": "lsc",
    "team": "team",
    "school": "team",
    "club": "team",
    "relay": "relay",
    "seed": "seed",
    "entry": "seed",
    "prelim": "seed",
    "prelims": "seed",
    "time": "time",
    "carril": "lane",
    "nombre": "name",
    "edad": "age",
    "equipo": "team",
    "relevo": "relay",
    # "Tiempo para Sembrado" is so long that it overlaps the label before it.
    "tiempo": "filler",
    "para": "filler",
    "sembrado": "seed",
}
# Adjacent labels may have no gap between them.
_JOINED = {some + other: len(some) for some in _LABELS for other in _LABELS}
# Labels have this order, so one that comes earlier in it belongs to the next column.
_ORDER = ("lane", "name", "age", "team", "relay", "seed", "time")
_ANYWHERE = {"filler", "lsc"}
# A column begins at one of these pairs. One word is not enough: a swimmer may be named Lane.
_BEGINNINGS = {
    ("lane", "name"),
    ("lane", "team"),
    ("lane", "lsc"),
    ("lane", "relay"),
    ("name", "age"),
    ("name", "team"),
    ("team", "relay"),
}


class Extent(NamedTuple):
    x0: float
    x1: float


class TableHeader(NamedTuple):
    """Extents of labels: lane, name, age, lsc, team, relay, seed."""

    extents: dict[str, Extent]

    @property
    def x0(self) -> float:
        return min(extent.x0 for extent in self.extents.values())

    @property
    def x1(self) -> float:
        return max(extent.x1 for extent in self.extents.values())

    @property
    def is_relay(self) -> bool:
        return "name" not in self.extents

    def get(self, label: str) -> Extent | None:
        return self.extents.get(label)


def find_table_headers(row: Sequence[Word]) -> list[TableHeader]:
    """All headers in a row, one for each column of the page."""
    row = [piece for word in row for piece in _split_labels(word)]
    labels = [_LABELS.get(word.text.casefold().rstrip(":")) for word in row]
    headers, index = [], 0
    while index < len(row) - 1:
        if (labels[index], labels[index + 1]) in _BEGINNINGS:
            header, index = _header_from(row, labels, index)
            headers.append(header)
        else:
            index += 1
    return headers


def _split_labels(word: Word) -> tuple[Word, ...]:
    cut = _JOINED.get(word.text.casefold())
    return halves(word, cut) if cut else (word,)


def _header_from(
    row: Sequence[Word], labels: Sequence[str | None], index: int
) -> tuple[TableHeader, int]:
    extents: dict[str, Extent] = {}
    rank = -1
    while index < len(row):
        label, word = labels[index], row[index]
        if label in _ANYWHERE:
            if label == "lsc":
                extents[label] = Extent(word.x0, word.x1)
            index += 1
            continue
        if label is None or _ORDER.index(label) <= rank:
            break
        rank = _ORDER.index(label)
        if label == "time" and "seed" in extents:
            extents["seed"] = Extent(extents["seed"].x0, word.x1)
        else:
            extents[label] = Extent(word.x0, word.x1)
        index += 1
    return TableHeader(extents), index
