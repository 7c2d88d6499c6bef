"""What an error of a model means for its prompt, its provider and the attempt."""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from batchmill import (
    ModelAnswerTooLong,
    ModelBadAnswer,
    ModelBadStatus,
    ModelDeclined,
    ModelError,
    ModelTooSlow,
    ModelUnreachable,
)

A_DAY = 86_400.0
ABOUT_THE_PROMPT = (400, 413, 415, 422)


@dataclass(frozen=True, slots=True)
class Failure:
    """`is_transient`: a later attempt may succeed. `stops`: it makes no sense to ask this provider
    other prompts in this attempt. `message` is a sentence for users."""

    code: str
    message: str
    is_transient: bool
    stops: bool
    retry_after: float | None = None


def failure_of(error: ModelError, now: datetime) -> Failure:
    """Decides by the type and the status. A date in a Retry-After header is relative to `now`."""
    if isinstance(error, ModelBadStatus):
        return _of_status(error.status, _retry_after(error, now))
    match error:
        case ModelTooSlow():
            return Failure("too_slow", "The provider did not answer in time.", True, True)
        case ModelUnreachable():
            return Failure("unreachable", "The provider could not be reached.", True, True)
        case ModelBadAnswer():
            return Failure("bad_answer", "The provider sent no usable answer.", True, False)
        case ModelDeclined():
            return Failure("declined", "The model declined to answer.", False, False)
        case ModelAnswerTooLong():
            return Failure("too_long", "The model's answer is too long.", False, False)
        case _:
            return Failure("failed", "The provider failed.", False, True)


def _of_status(status: int, wait: float | None) -> Failure:
    if status == 429:
        message = "The provider limits the rate of requests. Lower its rate or its slots."
        return Failure("rate_limited", message, True, True, wait)
    if status == 408 or status >= 500:
        message = f"The provider is not available: it answered {status}."
        return Failure("unavailable", message, True, wait is not None, wait)
    if status in (401, 403):
        message = "The provider refused the key. Check the key and its permissions."
        return Failure("not_allowed", message, False, True)
    if status in (404, 410):
        message = "The provider does not know the model or the address. Check both."
        return Failure("not_found", message, False, True)
    message = f"The provider refused the request: it answered {status}."
    return Failure("rejected", message, False, status not in ABOUT_THE_PROMPT)


def _retry_after(error: ModelBadStatus, now: datetime) -> float | None:
    headers = {name.lower(): value for name, value in error.headers.items()}
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    seconds = float(value) if value.isascii() and value.isdigit() else _until(value, now)
    return None if seconds is None else min(max(seconds, 0.0), A_DAY)


def _until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - now).total_seconds()
