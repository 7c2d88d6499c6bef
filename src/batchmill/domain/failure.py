"""Classifies an attempt's exception: a stable code, whether to retry, and the messages.

The order is: the user's rules, batchmill's own `Transient` and `Permanent`, the HTTP status, the
type. An error is checked before its causes. Its text is never used, because it is not stable.
"""

import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

from batchmill.domain.retry import A_DAY
from batchmill.errors import InvalidInput, Permanent, Transient

DETAIL_LENGTH = 8_000
MESSAGE_LENGTH = 1_000

_TEXT_LENGTH = 2_000
_FRAMES = 50
_RELATED_ERRORS = 10
_CUT = "\n[…]\n"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Match: TypeAlias = type[BaseException] | int | Callable[[BaseException], bool] | tuple["Match", ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """`message` is a sentence that end users may see. `detail` is for operators only."""

    code: str
    transient: bool
    message: str
    detail: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A user's own classification of an error. It takes precedence over batchmill's.

    `match` is an exception type, an HTTP status, a function of the error, or a tuple of these.
    """

    match: Match
    code: str
    transient: bool
    message: str | None = None

    def __post_init__(self) -> None:
        if not _can_match(self.match):
            raise InvalidInput(
                "A rule must match an exception type, an HTTP status, a function of the "
                f"error, or a tuple of these, not {self.match!r}."
            )


@dataclass(frozen=True, slots=True)
class _Meaning:
    code: str
    transient: bool
    message: str


_MEANINGS = {
    meaning.code: meaning
    for meaning in (
        _Meaning(
            "rate_limited", True, "A service that this job needs limits the rate of requests."
        ),
        _Meaning("timeout", True, "This took longer than its time limit."),
        _Meaning("network", True, "A service that this job needs could not be reached."),
        _Meaning("overloaded", True, "A service that this job needs is overloaded."),
        _Meaning("unavailable", True, "A service that this job needs is not available."),
        _Meaning("out_of_memory", True, "This needed more memory than is available."),
        _Meaning("unexpected", True, "An unexpected error occurred."),
        _Meaning("invalid_input", False, "The input is not valid."),
        _Meaning("not_found", False, "A resource that this job needs does not exist."),
        _Meaning("not_allowed", False, "Access to a resource that this job needs was refused."),
        _Meaning("quota_exceeded", True, "The quota of the tenant is used up."),
        _Meaning("storage_exceeded", False, "The storage quota for files is used up."),
        _Meaning("rejected", False, "A service that this job needs refused the request."),
    )
}
_UNEXPECTED = _MEANINGS["unexpected"]

_CODE_BY_STATUS = {
    status: code
    for code, statuses in {
        "rate_limited": (429,),
        "timeout": (408, 504, 524),
        "overloaded": (529,),
        "invalid_input": (400, 413, 415, 422),
        "not_found": (404, 410),
        "not_allowed": (401, 403),
    }.items()
    for status in statuses
}

# Keyed by name, so that no library must be installed or imported.
_CODE_BY_TYPE = {
    name: code
    for code, names in {
        "timeout": (
            "builtins.TimeoutError",
            "aiohttp.client_exceptions.ServerTimeoutError",
            "httpcore.TimeoutException",
            "httpx.TimeoutException",
            "requests.exceptions.ConnectTimeout",
            "requests.exceptions.Timeout",
            "urllib3.exceptions.TimeoutError",
        ),
        "network": (
            "builtins.ConnectionError",
            "http.client.IncompleteRead",
            "socket.gaierror",
            "ssl.SSLError",
            "urllib.error.URLError",
            "aiohttp.client_exceptions.ClientConnectionError",
            "aiohttp.client_exceptions.ClientPayloadError",
            "httpcore.NetworkError",
            "httpcore.ProtocolError",
            "httpx.TransportError",
            "requests.exceptions.ChunkedEncodingError",
            "requests.exceptions.ConnectionError",
            "urllib3.exceptions.MaxRetryError",
            "urllib3.exceptions.NewConnectionError",
            "urllib3.exceptions.ProtocolError",
        ),
        "unavailable": (
            "batchmill.errors.DatabaseUnavailable",
            "batchmill.errors.StorageError",
            "psycopg.OperationalError",
        ),
        "out_of_memory": ("builtins.MemoryError",),
        "invalid_input": (
            "batchmill.errors.InvalidInput",
            "pydantic_core._pydantic_core.ValidationError",
        ),
        "not_found": ("batchmill.errors.NotFound", "builtins.FileNotFoundError"),
        "not_allowed": ("builtins.PermissionError",),
        "quota_exceeded": ("batchmill.errors.QuotaExceeded",),
        "storage_exceeded": ("batchmill.errors.StorageExceeded",),
        "rejected": ("batchmill.errors.BadStatus", "batchmill.errors.ModelBadStatus"),
    }.items()
    for name in names
}


def classify(error: BaseException, rules: Sequence[Rule] = (), *, now: datetime) -> Failure:
    """Classifies an error. A date in a Retry-After header is relative to `now`."""
    meaning, source = _understand(error, rules)
    return Failure(
        code=storable(meaning.code),
        transient=meaning.transient,
        message=storable(cut(meaning.message, MESSAGE_LENGTH)),
        detail=storable(cut(_detail(error), DETAIL_LENGTH)),
        retry_after=_retry_after(source, now) if meaning.transient else None,
    )


def storable(text: str) -> str:
    """Replaces NUL and lone surrogates, which Postgres cannot store, by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def _understand(error: BaseException, rules: Sequence[Rule]) -> tuple[_Meaning, BaseException]:
    """Returns the meaning, and the error of the chain or group that it comes from."""
    for link in _causes(error):
        if meaning := _meaning(link, rules):
            return meaning, link
        if isinstance(link, BaseExceptionGroup):
            return _gravest([_understand(member, rules) for member in link.exceptions])
    return _UNEXPECTED, error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_RELATED_ERRORS):
        if error is None:
            return
        yield error
        error = error.__cause__


def _gravest(
    readings: list[tuple[_Meaning, BaseException]],
) -> tuple[_Meaning, BaseException]:
    """Returns the first permanent error, because retrying the others would not help the job."""
    return next((reading for reading in readings if not reading[0].transient), readings[0])


def _meaning(error: BaseException, rules: Sequence[Rule]) -> _Meaning | None:
    return _ruled(error, rules) or _declared(error) or _by_status(error) or _by_type(error)


def _ruled(error: BaseException, rules: Sequence[Rule]) -> _Meaning | None:
    for rule in rules:
        if _matches(rule.match, error):
            message = rule.message or _MEANINGS.get(rule.code, _UNEXPECTED).message
            return _Meaning(rule.code, rule.transient, message)
    return None


def _declared(error: BaseException) -> _Meaning | None:
    if not isinstance(error, Transient | Permanent):
        return None
    message = _text(error) or _UNEXPECTED.message
    return _Meaning(error.error_code, not isinstance(error, Permanent), message)


def _by_status(error: BaseException) -> _Meaning | None:
    status = _http_status(error)
    if status is None:
        return None
    otherwise = "rejected" if status < 500 else "unavailable"
    return _MEANINGS[_CODE_BY_STATUS.get(status, otherwise)]


def _by_type(error: BaseException) -> _Meaning | None:
    names = map(_full_name, type(error).__mro__)
    code = next((_CODE_BY_TYPE[name] for name in names if name in _CODE_BY_TYPE), None)
    return _MEANINGS[code] if code else None


def _can_match(match: object) -> bool:
    if isinstance(match, tuple):
        return all(map(_can_match, match))
    if isinstance(match, type):
        return issubclass(match, BaseException)
    return isinstance(match, int) or callable(match)


def _matches(match: Match, error: BaseException) -> bool:
    if isinstance(match, tuple):
        return any(_matches(each, error) for each in match)
    if isinstance(match, type):
        return isinstance(error, match)
    if isinstance(match, int):
        return _http_status(error) == match
    try:
        return bool(match(error))
    except Exception:
        # A broken rule must not hide the original failure.
        return False


def _http_status(error: BaseException) -> int | None:
    """Reads the status where httpx, requests, aiohttp, urllib and clients based on them keep it."""
    response = _attribute(error, "response")
    candidates = (
        _attribute(error, "status_code"),
        _attribute(error, "status"),
        _attribute(response, "status_code"),
        _attribute(response, "status"),
        _attribute(error, "code"),
    )
    return next((it for it in candidates if isinstance(it, int) and 400 <= it <= 599), None)


def _attribute(thing: object, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:
        # Some attributes are properties that raise, for example `request` in httpx.
        return None


def _retry_after(error: BaseException, now: datetime) -> float | None:
    candidates = (
        _attribute(error, "retry_after"),
        _retry_after_header(_attribute(error, "response")),
        _retry_after_header(error),
    )
    waits = (_seconds(value, now) for value in candidates)
    wait = next((wait for wait in waits if wait is not None), None)
    return None if wait is None else min(max(wait, 0.0), A_DAY)


def _retry_after_header(carrier: object) -> Any:
    try:
        pairs = list(_attribute(carrier, "headers").items())
    except Exception:
        return None
    return next((value for name, value in pairs if str(name).lower() == "retry-after"), None)


def _seconds(value: Any, now: datetime) -> float | None:
    try:
        seconds = float(value)
    except (TypeError, OverflowError):
        return None
    except ValueError:
        return _seconds_until(value, now)
    return seconds if seconds == seconds else None


def _seconds_until(http_date: Any, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(http_date)
    except Exception:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - now).total_seconds()


def _detail(error: BaseException) -> str:
    return "\n".join(map(_section, _related(error)))


def _section(error: BaseException) -> str:
    stack = "".join(traceback.format_tb(error.__traceback__, limit=-_FRAMES))
    return f"{_full_name(type(error))}: {_text(error)}\n{stack}"


def _related(error: BaseException) -> list[BaseException]:
    """Returns the error, its causes and the members of groups, up to `_RELATED_ERRORS`."""
    found = [error]
    for each in found:
        for other in (_origin(each), *_members(each)):
            if other is not None and len(found) < _RELATED_ERRORS:
                found.append(other)
    return found


def _origin(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _members(error: BaseException) -> tuple[BaseException, ...]:
    return error.exceptions if isinstance(error, BaseExceptionGroup) else ()


def _text(error: BaseException) -> str:
    try:
        return cut(str(error), _TEXT_LENGTH)
    except Exception:
        return "(the text of the error is not available)"


def cut(text: str, length: int) -> str:
    """Keeps both ends of a long text, because the cause is usually at one of them."""
    if len(text) <= length:
        return text
    half = (length - len(_CUT)) // 2
    return text[:half] + _CUT + text[-half:]


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
