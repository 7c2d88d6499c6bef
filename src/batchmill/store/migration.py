"""One numbered migration, read from a file `NNNN_name.sql`."""

import re
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from batchmill.errors import ConfigurationError

FILE = re.compile(r"(\d{4})_(\w+)\.sql")


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    sql: str
    schema: str = "batchmill"

    @property
    def locks(self) -> list[str]:
        """The existing tables that it changes, from the line `-- Locks: one, two`."""
        line = re.search(r"^-- Locks: (.*)", self.sql, re.MULTILINE)
        return line[1].split(", ") if line else []


def migrations_in(folder: Traversable, schema: str = "batchmill") -> tuple[Migration, ...]:
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    found = tuple(_read(file, schema) for file in files if file.name.endswith(".sql"))
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        names = ", ".join(file.name for file in files)
        raise ConfigurationError(
            f"The migrations of {schema} must be numbered from 0001 on, without gaps: {names}."
        )
    return found


def _read(file: Traversable, schema: str) -> Migration:
    if (name := FILE.fullmatch(file.name)) is None:
        raise ConfigurationError(
            f"The name of a migration must be like 0001_tables.sql, not {file.name}."
        )
    return Migration(int(name[1]), name[2], file.read_text(encoding="utf-8"), schema)
