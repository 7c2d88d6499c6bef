"""Which fetch errors of a handler are retried, and which are permanent."""

from datetime import UTC, datetime

import pytest

from batchmill import (
    AddressRefused,
    BadResponse,
    BadStatus,
    BadUrl,
    FetchError,
    ResponseTooLarge,
    ResponseTooSlow,
    Rule,
    TooManyRedirects,
    Unreachable,
)
from batchmill.domain.failure import Failure, classify
from tests.fetch.site import Site, answer

NOW = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "code", "transient"),
    [
        (BadUrl, "bad_url", False),
        (AddressRefused, "address_refused", False),
        (TooManyRedirects, "too_many_redirects", False),
        (ResponseTooLarge, "too_large", False),
        (BadResponse, "bad_response", False),
        (ResponseTooSlow, "too_slow", True),
        (Unreachable, "unreachable", True),
    ],
)
def test_each_error_has_a_code_and_is_transient_or_permanent(
    kind: type[FetchError], code: str, transient: bool
):
    classified = classify(kind("In words for people."), now=NOW)
    assert (classified.code, classified.transient) == (code, transient)
    assert classified.message == "In words for people."


async def failure(site: Site, *rules: Rule) -> Failure:
    with pytest.raises(BadStatus) as caught:
        await site.fetcher().read(site.url())
    return classify(caught.value, rules, now=NOW)


@pytest.mark.parametrize(
    ("status", "code", "transient"),
    [
        (304, "rejected", False),
        (400, "invalid_input", False),
        (401, "not_allowed", False),
        (404, "not_found", False),
        (410, "not_found", False),
        (418, "rejected", False),
        (429, "rate_limited", True),
        (500, "unavailable", True),
        (503, "unavailable", True),
        (504, "timeout", True),
    ],
)
async def test_a_status_is_classified_like_other_http_errors(
    site: Site, status: int, code: str, transient: bool
):
    site.pages["/"] = answer(status=status)
    classified = await failure(site)
    assert (classified.code, classified.transient) == (code, transient)


@pytest.mark.parametrize(("value", "seconds"), [("7", 7), ("Sat, 10 Jan 2026 12:00:30 GMT", 30)])
async def test_retry_after_is_read_from_the_response(site: Site, value: str, seconds: float):
    site.pages["/"] = answer(status=429, retry_after=value)
    assert (await failure(site)).retry_after == seconds


async def test_rules_can_match_the_status(site: Site):
    site.pages["/"] = answer(status=404)
    rule = Rule(404, code="not_there_yet", transient=True)
    assert (await failure(site, rule)).code == "not_there_yet"


async def test_the_message_of_a_bad_status_has_host_and_reason(site: Site):
    site.pages["/"] = answer(status=404)
    with pytest.raises(BadStatus, match="127.0.0.1 answers 404 .Not Found.") as caught:
        await site.fetcher().read(site.url())
    assert (caught.value.status, caught.value.code) == (404, "bad_status")
