import email.message
import socket
import ssl
import time
import urllib.error
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import psycopg
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill.domain import failure
from batchmill.domain.failure import DETAIL_LENGTH, MESSAGE_LENGTH, Failure, Rule, storable
from batchmill.errors import (
    DatabaseUnavailable,
    InvalidInput,
    InvalidPayload,
    Permanent,
    Transient,
)

NOW = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
SECRET = "password=hunter2"


def classify(error: BaseException, *rules: Rule) -> Failure:
    return failure.classify(error, rules, now=NOW)


def error_with(**attributes: Any) -> Exception:
    error = Exception(SECRET)
    vars(error).update(attributes)
    return error


def library_error(module: str, *names: str) -> Exception:
    """Returns an error with the class names of a library that need not be installed."""
    kind = Exception
    for name in names:
        kind = type(name, (kind,), {"__module__": module})
    return kind(SECRET)


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    try:
        raise error from cause
    except Exception as caught:
        return caught


def validation_error() -> Exception:
    try:
        pydantic.TypeAdapter(int).validate_python(SECRET)
    except pydantic.ValidationError as error:
        return error
    raise AssertionError


class TestStatus:
    @pytest.mark.parametrize(
        ("status", "code", "transient"),
        [
            (429, "rate_limited", True),
            (408, "timeout", True),
            (504, "timeout", True),
            (524, "timeout", True),
            (529, "overloaded", True),
            (500, "unavailable", True),
            (502, "unavailable", True),
            (503, "unavailable", True),
            (599, "unavailable", True),
            (400, "invalid_input", False),
            (413, "invalid_input", False),
            (415, "invalid_input", False),
            (422, "invalid_input", False),
            (404, "not_found", False),
            (410, "not_found", False),
            (401, "not_allowed", False),
            (403, "not_allowed", False),
            (409, "rejected", False),
            (451, "rejected", False),
        ],
    )
    def test_each_status_has_its_code(self, status: int, code: str, transient: bool):
        failed = classify(error_with(status_code=status))
        assert (failed.code, failed.transient) == (code, transient)

    @pytest.mark.parametrize(
        "error",
        [
            error_with(status_code=404),
            error_with(status=404),
            error_with(response=SimpleNamespace(status_code=404)),
            error_with(response=SimpleNamespace(status=404)),
            error_with(response=None, code=HTTPStatus.NOT_FOUND),
            urllib.error.HTTPError("http://x", 404, "gone", email.message.Message(), None),
        ],
    )
    def test_the_status_is_read_from_the_attributes_of_many_libraries(self, error: Exception):
        assert classify(error).code == "not_found"

    @pytest.mark.parametrize("status", [200, 302, 0, -1, 1000, "404", None, True])
    def test_a_value_that_is_not_an_error_status_is_ignored(self, status: object):
        assert classify(error_with(status_code=status)).code == "unexpected"

    def test_a_property_that_raises_is_ignored(self):
        class Awkward(Exception):
            @property
            def response(self) -> None:
                raise RuntimeError("the request has not been set")

        assert classify(Awkward()).code == "unexpected"

    def test_the_status_has_precedence_over_the_type(self):
        error = TimeoutError()
        vars(error)["status_code"] = 404
        assert classify(error).code == "not_found"


class TestType:
    @pytest.mark.parametrize(
        ("error", "code", "transient"),
        [
            (TimeoutError(SECRET), "timeout", True),
            (ConnectionResetError(SECRET), "network", True),
            (socket.gaierror(SECRET), "network", True),
            (ssl.SSLCertVerificationError(SECRET), "network", True),
            (urllib.error.URLError(SECRET), "network", True),
            (psycopg.errors.AdminShutdown(SECRET), "unavailable", True),
            (DatabaseUnavailable(SECRET), "unavailable", True),
            (MemoryError(), "out_of_memory", True),
            (FileNotFoundError(SECRET), "not_found", False),
            (PermissionError(SECRET), "not_allowed", False),
            (InvalidInput(SECRET), "invalid_input", False),
            (InvalidPayload("$.url", SECRET), "invalid_input", False),
            (validation_error(), "invalid_input", False),
            (ValueError(SECRET), "unexpected", True),
            (OSError(SECRET), "unexpected", True),
            (SystemExit(SECRET), "unexpected", True),
        ],
    )
    def test_each_type_has_its_code_and_a_message_without_secrets(
        self, error: BaseException, code: str, transient: bool
    ):
        failed = classify(error)
        assert (failed.code, failed.transient) == (code, transient)
        assert SECRET not in failed.message
        assert failed.message.endswith(".")
        assert type(error).__qualname__ in failed.detail

    @pytest.mark.parametrize(
        ("module", "names", "code"),
        [
            ("httpx", ["TransportError", "TimeoutException", "ReadTimeout"], "timeout"),
            ("httpx", ["TransportError", "NetworkError", "ConnectError"], "network"),
            ("requests.exceptions", ["RequestException", "Timeout"], "timeout"),
            ("requests.exceptions", ["RequestException", "ConnectionError"], "network"),
            ("aiohttp.client_exceptions", ["ClientConnectionError", "ClientOSError"], "network"),
            ("someone.elses", ["ReadTimeout"], "unexpected"),
        ],
    )
    def test_libraries_are_recognised_by_qualified_name(
        self, module: str, names: list[str], code: str
    ):
        assert classify(library_error(module, *names)).code == code

    @pytest.mark.parametrize("text", ["timeout", "429 Too Many Requests", "Connection refused"])
    def test_the_text_of_an_error_does_not_affect_the_code(self, text: str):
        assert classify(RuntimeError(text)).code == "unexpected"


class TestHandlerErrors:
    def test_the_values_of_a_handler_error_are_kept(self):
        failed = classify(Transient("The scanner is warming up.", code="scanner", retry_after=30))
        assert (failed.code, failed.transient, failed.retry_after) == ("scanner", True, 30)
        assert failed.message == "The scanner is warming up."

    def test_a_permanent_error_is_not_transient(self):
        failed = classify(Permanent("The PDF is locked."))
        assert (failed.code, failed.transient, failed.retry_after) == ("permanent", False, None)

    def test_an_empty_message_is_replaced(self):
        assert classify(Permanent("")).message == "An unexpected error occurred."

    def test_a_long_message_is_cut(self):
        assert len(classify(Permanent("x" * 10**6)).message) <= MESSAGE_LENGTH


class TestRules:
    @pytest.mark.parametrize(
        "match",
        [
            KeyError,
            409,
            lambda error: error.status == 409,
            (ValueError, 409),
            (ValueError, (TypeError, lambda error: "key" in error.args)),
        ],
    )
    def test_a_rule_matches_by_type_status_or_function(self, match: Any):
        error = KeyError("key")
        vars(error)["status"] = 409
        failed = classify(error, Rule(match, "duplicate", transient=False, message="Done already."))
        assert (failed.code, failed.transient, failed.message) == (
            "duplicate",
            False,
            "Done already.",
        )

    def test_the_first_matching_rule_overrides_the_built_in_rules(self):
        rules = [Rule(429, "quota", transient=False), Rule(Exception, "any", transient=True)]
        assert classify(error_with(status=429), *rules).code == "quota"
        assert classify(Permanent("No."), *rules).code == "any"

    def test_a_rule_without_a_message_uses_the_message_of_its_code(self):
        known = classify(KeyError(), Rule(KeyError, "not_found", transient=False))
        assert known.message == classify(FileNotFoundError()).message
        unknown = classify(KeyError(), Rule(KeyError, "no_such_swimmer", transient=False))
        assert unknown.message == "An unexpected error occurred."

    def test_a_rule_that_raises_is_ignored(self):
        assert classify(TimeoutError(), Rule(lambda _: 1 / 0 > 0, "x", True)).code == "timeout"

    @pytest.mark.parametrize("match", [None, "timeout", str, (KeyError, "x")])
    def test_an_invalid_match_is_refused(self, match: Any):
        with pytest.raises(InvalidInput, match="A rule must match an exception type"):
            Rule(match, "x", transient=True)


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            ("120", 120),
            ("0.5", 0.5),
            (7, 7),
            ("Sat, 10 Jan 2026 12:01:30 GMT", 90),
            ("Sat, 10 Jan 2026 12:01:30 -0000", 90),
            ("Sat, 10 Jan 2026 11:00:00 GMT", 0),
            ("-5", 0),
            ("999999999", 86_400),
            ("inf", 86_400),
            ("Sat, 10 Jan 2099 12:00:00 GMT", 86_400),
            ("nan", None),
            ("soon", None),
            ("", None),
            (10**400, None),
            (object(), None),
        ],
    )
    def test_seconds_and_http_dates_are_read_and_limited_to_a_day(
        self, value: object, seconds: float | None
    ):
        assert classify(error_with(status=503, retry_after=value)).retry_after == seconds

    @pytest.mark.parametrize("headers", [{"Retry-After": "9"}, {"retry-after": "9"}])
    def test_retry_after_is_read_from_headers_in_any_case(self, headers: Mapping[str, str]):
        response = SimpleNamespace(status_code=429, headers=headers)
        assert classify(error_with(response=response)).retry_after == 9
        assert classify(error_with(status=429, headers=headers)).retry_after == 9

    def test_retry_after_is_read_from_headers_of_urllib(self):
        headers = email.message.Message()
        headers["Retry-After"] = "9"
        error = urllib.error.HTTPError("http://x", 429, "slow down", headers, None)
        assert classify(error).retry_after == 9

    def test_a_permanent_failure_has_no_retry_after(self):
        assert classify(error_with(status=404, retry_after=9)).retry_after is None

    def test_headers_that_are_not_a_mapping_are_ignored(self):
        assert classify(error_with(status=429, headers=b"Retry-After: 9")).retry_after is None


class TestChainsAndGroups:
    def test_a_wrapped_error_has_the_code_of_its_cause(self):
        error = raised(RuntimeError("wrapped"), raised(ValueError(), TimeoutError()))
        failed = classify(error)
        assert failed.code == "timeout"
        assert "RuntimeError" in failed.detail
        assert "TimeoutError" in failed.detail

    def test_the_outer_error_has_precedence_over_its_cause(self):
        error = raised(Permanent("Give up.", code="gave_up"), error_with(status=503))
        assert classify(error).code == "gave_up"

    def test_the_context_of_an_error_affects_the_detail_but_not_the_code(self):
        try:
            try:
                raise FileNotFoundError("cache")
            except FileNotFoundError:
                raise ValueError("bug") from None
        except ValueError as error:
            assert "cache" not in classify(error).detail
        try:
            try:
                raise FileNotFoundError("cache")
            except FileNotFoundError:
                raise ValueError("bug")  # noqa: B904
        except ValueError as error:
            failed = classify(error)
        assert failed.code == "unexpected"
        assert "cache" in failed.detail

    def test_a_circular_chain_of_causes_is_classified(self):
        one, other = ValueError("one"), ValueError("other")
        one.__cause__, other.__cause__ = other, one
        assert classify(one).code == "unexpected"

    def test_a_group_has_the_code_of_its_first_leaf(self):
        nested = ExceptionGroup("inner", [TimeoutError(), ConnectionError()])
        assert classify(ExceptionGroup("outer", [nested, MemoryError()])).code == "timeout"

    def test_a_group_with_a_permanent_leaf_is_permanent(self):
        nested = ExceptionGroup("inner", [TimeoutError(), Permanent("Locked.", code="locked")])
        failed = classify(ExceptionGroup("outer", [ConnectionError(), nested]))
        assert (failed.code, failed.transient, failed.message) == ("locked", False, "Locked.")

    def test_a_group_has_the_retry_after_of_the_chosen_leaf(self):
        group = ExceptionGroup("all", [error_with(status=429, retry_after=5), ValueError()])
        assert classify(group).retry_after == 5

    def test_the_detail_of_a_huge_group_stays_short(self):
        group = ExceptionGroup("all", [raised(ValueError(n)) for n in range(10_000)])
        assert len(classify(group).detail) <= DETAIL_LENGTH


class TestText:
    def test_the_detail_has_the_error_and_where_it_was_raised(self):
        detail = classify(raised(ValueError(SECRET))).detail
        assert detail.startswith(f"builtins.ValueError: {SECRET}\n")
        assert "test_failure.py" in detail

    @pytest.mark.parametrize("unit", ["x", "x\n", "\0", "\ud800"])
    def test_fifty_megabytes_are_shortened_quickly_and_both_ends_are_kept(self, unit: str):
        text = "head" + unit * (50_000_000 // len(unit)) + "tail"
        error = ExceptionGroup("all", [raised(Permanent(text))])
        started = time.perf_counter()
        failed = classify(error)
        assert time.perf_counter() - started < 0.5
        assert len(failed.detail) <= DETAIL_LENGTH
        assert "head" in failed.detail
        assert "tail" in failed.detail

    def test_a_long_text_does_not_displace_the_cause(self):
        cause = raised(KeyError("x" * 50_000))
        detail = classify(raised(ValueError("x" * 50_000 + "end of text"), cause)).detail
        assert "end of text" in detail
        assert "builtins.KeyError" in detail

    def test_a_deep_stack_is_cut(self):
        def dig(depth: int) -> None:
            if depth == 0:
                raise ValueError("bottom")
            dig(depth - 1)

        with pytest.raises(ValueError) as caught:
            dig(500)
        failed = classify(caught.value)
        assert len(failed.detail) <= DETAIL_LENGTH
        assert "bottom" in failed.detail

    def test_an_error_whose_text_raises_is_classified(self):
        class Mute(TimeoutError):
            def __str__(self) -> str:
                raise RuntimeError("no text")

        failed = classify(raised(Mute()))
        assert failed.code == "timeout"
        assert "Mute: (the text of the error is not available)" in failed.detail

    def test_code_message_and_detail_are_storable(self):
        failed = classify(Transient("a\0b\ud800c", code="x\0"))
        assert (failed.code, failed.message) == ("x\ufffd", "a\ufffdb\ufffdc")
        assert "a\ufffdb\ufffdc" in failed.detail

    @given(st.text(st.characters(exclude_categories=[])))
    def test_storable_text_keeps_its_length_and_encodes(self, text: str):
        kept = storable(text)
        assert len(kept) == len(text)
        assert b"\0" not in kept.encode()
        assert storable(kept) == kept
