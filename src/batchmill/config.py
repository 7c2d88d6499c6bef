"""Settings. This is the only place that reads the environment."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from batchmill.errors import ConfigurationError

Pooler = Literal["auto", "none", "transaction"]
POOLERS: tuple[Pooler, ...] = ("auto", "none", "transaction")


@dataclass(frozen=True, slots=True)
class Settings:
    """`dsn` None means the embedded server, whose data lie in `home`."""

    dsn: str | None
    home: Path | None
    pooler: Pooler

    @classmethod
    def read(cls, dsn: str | None = None, home: str | Path | None = None) -> "Settings":
        """What is given, else DATABASE_URL, BATCHMILL_HOME and BATCHMILL_POOLER."""
        where = home or os.environ.get("BATCHMILL_HOME")
        return cls(
            dsn=dsn or os.environ.get("DATABASE_URL") or None,
            home=Path(where).expanduser() if where else None,
            pooler=_pooler(os.environ.get("BATCHMILL_POOLER", "auto")),
        )


def app_reference() -> str | None:
    """Where the command line finds the mill: `module:name`."""
    return os.environ.get("BATCHMILL_APP")


def _pooler(value: str) -> Pooler:
    for known in POOLERS:
        if value == known:
            return known
    raise ConfigurationError(f'BATCHMILL_POOLER is one of {", ".join(POOLERS)}, not "{value}".')
