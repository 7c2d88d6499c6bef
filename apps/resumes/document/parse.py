"""JSON from bytes, with bounds."""

import json
from typing import Any, NoReturn

from apps.resumes.document.errors import InvalidDocument

MAX_BYTES = 1024 * 1024
TOO_LARGE = "The document is larger than 1 MiB."


def parse(body: bytes) -> Any:
    """The JSON of a request or a file, for `read`. A byte-order mark is accepted."""
    if len(body) > MAX_BYTES:
        raise InvalidDocument("$", TOO_LARGE)
    try:
        return json.loads(body, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidDocument("$", f"It is not JSON: {place}.") from None
    except (ValueError, RecursionError):
        raise InvalidDocument("$", "It is not JSON.") from None


def refuse_constant(name: str) -> NoReturn:
    """NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(name)


def check_size(data: Any) -> None:
    """`data` has been checked: without surrogates, not too deep."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > MAX_BYTES:
        raise InvalidDocument("$", TOO_LARGE)
