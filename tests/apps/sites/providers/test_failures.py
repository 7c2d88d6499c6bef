"""What errors of models mean, and how long answers may be."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.sites.providers.failures import failure_of
from apps.sites.providers.texts import MOST_BYTES, bounded
from batchmill import (
    ModelAnswerTooLong,
    ModelBadAnswer,
    ModelBadStatus,
    ModelDeclined,
    ModelError,
    ModelTooSlow,
    ModelUnreachable,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def of_status(status: int, **headers: str) -> ModelBadStatus:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ModelBadStatus("The endpoint answered.", status=status, headers=named)


@pytest.mark.parametrize(
    ("error", "code", "is_transient", "stops"),
    [
        (of_status(429), "rate_limited", True, True),
        (of_status(500), "unavailable", True, False),
        (of_status(503), "unavailable", True, False),
        (of_status(529), "unavailable", True, False),
        (of_status(408), "unavailable", True, False),
        (of_status(503, Retry_After="5"), "unavailable", True, True),
        (of_status(401), "not_allowed", False, True),
        (of_status(403), "not_allowed", False, True),
        (of_status(404), "not_found", False, True),
        (of_status(402), "rejected", False, True),
        (of_status(302), "rejected", False, True),
        (of_status(400), "rejected", False, False),
        (of_status(422), "rejected", False, False),
        (ModelTooSlow(""), "too_slow", True, True),
        (ModelUnreachable(""), "unreachable", True, True),
        (ModelBadAnswer(""), "bad_answer", True, False),
        (ModelDeclined(""), "declined", False, False),
        (ModelAnswerTooLong(""), "too_long", False, False),
        (ModelError(""), "failed", False, True),
    ],
)
def test_errors_are_classified_by_type_and_status(
    error: ModelError, code: str, is_transient: bool, stops: bool
) -> None:
    found = failure_of(error, NOW)
    assert (found.code, found.is_transient, found.stops) == (code, is_transient, stops)
    assert found.message.endswith(".")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("90", 90),
        ("0", 0),
        (" 7 ", 7),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0),
        ("Tue, 01 Jan 2030 00:01:30", 90),
        ("99999999", 86_400),
        ("9" * 400, 86_400),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("²", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("name", ["Retry-After", "retry-after"])
def test_retry_after_is_seconds_or_a_date(name: str, value: str, seconds: float | None) -> None:
    error = ModelBadStatus("", status=429, headers={name: value})
    assert failure_of(error, NOW).retry_after == seconds


def test_a_short_answer_is_stored_as_it_is() -> None:
    assert bounded("1. **Acme** “é”\n2. 日本 🍕") == ("1. **Acme** “é”\n2. 日本 🍕", False)
    assert bounded("a\r\nb\x00\x1b\ud800c") == ("a\nb\ufffd\ufffd\ufffdc", False)


@pytest.mark.parametrize("text", ["x", "é", "日", "🍕", '"', "\\", "\n.", "ab\n\t"])
def test_a_long_answer_is_cut_to_its_bytes_as_json(text: str) -> None:
    cut, is_cut = bounded(text * (MOST_BYTES + 1))
    size = len(json.dumps(cut, ensure_ascii=False).encode()) - 2
    assert is_cut and MOST_BYTES - 10 <= size <= MOST_BYTES


@given(st.text(max_size=50), st.integers(1, 2_000))
def test_any_answer_fits_and_can_be_stored(text: str, times: int) -> None:
    cut, _ = bounded(text * times)
    assert len(json.dumps(cut, ensure_ascii=False).encode()) - 2 <= MOST_BYTES
    assert "\x00" not in cut
