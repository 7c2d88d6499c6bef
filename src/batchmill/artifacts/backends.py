"""Chooses the storage that a setting names."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from batchmill.artifacts.local import LocalStorage
from batchmill.artifacts.storage import Storage
from batchmill.errors import ConfigurationError

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


def open_storage(where: str | Path) -> Storage:
    """Opens storage by a local path or by the URL of an object store."""
    if isinstance(where, str) and _URL.match(where):
        parts = urlsplit(where)
        if parts.scheme != "file":
            # Needs a package that local storage does not need.
            from batchmill.artifacts.objects import ObjectStorage

            return ObjectStorage(where)
        if parts.netloc not in ("", "localhost"):
            raise ConfigurationError(f"{where} is on another machine. Use a path on this machine.")
        where = unquote(parts.path)
    return LocalStorage(Path(where).expanduser())
