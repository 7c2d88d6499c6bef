"""Signed links and tokens: every byte is signed, and keys can be rotated."""

import string
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill import ConfigurationError, InvalidInput, InvalidLink, LinkExpired, Mill
from batchmill.domain.link import SigningKey, check_text, sign_link, sign_text, verify_link
from tests.library.tools import later, one

KEYS = [SigningKey(2, b"newer" * 8), SigningKey(1, b"older" * 8)]
PATH = "/v1/artifacts/6a3f9e0c-0000-4000-8000-000000000001/content"
ALPHABET = string.ascii_letters + string.digits + "-_.=/&?% +\0é"


def verify(method: str, path: str, query: dict[str, str], now: float = 999) -> str:
    return verify_link(KEYS, method, path, query, now).text


def mutations(text: str) -> Iterator[str]:
    """The text with each character replaced or removed, or with one added at either end."""
    for place, old in enumerate(text):
        for new in ALPHABET:
            if new != old:
                yield text[:place] + new + text[place + 1 :]
        yield text[:place] + text[place + 1 :]
    for new in ALPHABET:
        yield new + text
        yield text + new


def test_a_link_authenticates_its_tenant_until_it_expires() -> None:
    query = sign_link(KEYS[1], "GET", PATH, "ada", 1000)
    assert verify("GET", PATH, query) == "ada"
    with pytest.raises(LinkExpired):
        verify("GET", PATH, query, now=1000)


def test_a_verified_link_or_token_says_how_long_it_is_valid() -> None:
    query = sign_link(KEYS[0], "GET", PATH, "ada", 1000)
    assert verify_link(KEYS, "GET", PATH, query, 990.5) == ("ada", 9.5)
    assert check_text(KEYS, "a", sign_text(KEYS[0], "a", "text", 1000), 990.5) == ("text", 9.5)
    assert check_text(KEYS, "a", sign_text(KEYS[0], "a", "text"), 990.5) == ("text", None)


def test_changing_any_byte_of_a_link_invalidates_it() -> None:
    query = sign_link(KEYS[0], "GET", PATH, "ada", 1000)
    for name, value in query.items():
        for changed in mutations(value):
            with pytest.raises(InvalidLink) as refused:
                verify("GET", PATH, query | {name: changed})
            assert not isinstance(refused.value, LinkExpired)
    for changed in mutations(PATH):
        with pytest.raises(InvalidLink):
            verify("GET", changed, query)
    for method in ("HEAD", "PUT", "DELETE", "get", ""):
        with pytest.raises(InvalidLink):
            verify(method, PATH, query)


def test_a_link_with_a_missing_parameter_is_refused() -> None:
    query = sign_link(KEYS[0], "GET", PATH, "ada", 1000)
    for name in query:
        with pytest.raises(InvalidLink, match=name):
            verify("GET", PATH, {k: v for k, v in query.items() if k != name})


def test_bytes_cannot_be_moved_between_signed_parts() -> None:
    query = sign_link(KEYS[0], "GET", "/a", "ada", 1000)
    with pytest.raises(InvalidLink):
        verify("GET", "/aada", query | {"tenant": ""})
    with pytest.raises(InvalidLink):
        verify("GET/a", "", query)


def test_a_link_signed_with_an_unknown_key_is_refused() -> None:
    query = sign_link(SigningKey(0, b"forgotten"), "GET", PATH, "ada", 1000)
    with pytest.raises(InvalidLink):
        verify("GET", PATH, query)


def test_the_repr_of_a_key_does_not_contain_its_secret() -> None:
    assert "newer" not in repr(KEYS)


@given(st.text(), st.text(), st.text())
def test_any_tenant_survives_url_encoding(tenant: str, method: str, path: str) -> None:
    query = sign_link(KEYS[0], method, path, tenant, 1000)
    sent = dict(
        parse_qsl(
            urlencode(query, errors="surrogatepass"), keep_blank_values=True, errors="surrogatepass"
        )
    )
    assert verify(method, path, sent) == tenant


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_a_token_returns_its_text(text: str) -> None:
    token = sign_text(KEYS[0], "cursor", text)
    assert set(token) <= set(string.ascii_letters + string.digits + "-_.")
    assert check_text(KEYS, "cursor", token, now=10**12).text == text


def test_changing_any_byte_of_a_token_invalidates_it() -> None:
    token = sign_text(KEYS[0], "cursor", '["2026-01-01", 7]', 1000)
    for changed in mutations(token):
        with pytest.raises(InvalidLink) as refused:
            check_text(KEYS, "cursor", changed, 999)
        assert not isinstance(refused.value, LinkExpired)
    with pytest.raises(InvalidLink):
        check_text(KEYS, "stream", token, 999)
    with pytest.raises(LinkExpired):
        check_text(KEYS, "cursor", token, 1000)


@given(st.text())
def test_arbitrary_text_is_not_a_valid_token(token: str) -> None:
    with pytest.raises(InvalidLink):
        check_text(KEYS, "cursor", token, 0)


async def test_a_signer_creates_its_key_on_first_use(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    query = await mill.signer.sign("GET", PATH, "ada")
    assert await mill.signer.verify("GET", PATH, query) == "ada"
    assert one(sql, "select count(*), min(length(secret)) from batchmill.signing_keys") == (1, 32)
    assert await mill.on().signer.verify("GET", PATH, query) == "ada"


async def test_a_signer_uses_the_clock_of_the_database(mill: Mill, dsn: str) -> None:
    query = await mill.signer.sign("GET", PATH, "ada", expires_in=3600)
    token = await mill.signer.sign_text("stream", "batch", expires_in=60)
    assert await mill.signer.check_text("stream", token) == "batch"
    async with Mill(later(dsn, "3602s")) as hour_later:
        with pytest.raises(LinkExpired):
            await hour_later.signer.verify("GET", PATH, query)
        with pytest.raises(LinkExpired):
            await hour_later.signer.check_text("stream", token)


async def test_links_stay_valid_until_their_key_is_removed(mill: Mill) -> None:
    old = await mill.signer.sign("GET", PATH, "ada")
    await mill.signer.rotate()
    new = await mill.signer.sign("GET", PATH, "ada")
    assert old["key"] != new["key"]
    assert await mill.signer.verify("GET", PATH, old) == "ada"
    await mill.signer.rotate(keep=1)
    for void in (old, new):
        with pytest.raises(InvalidLink):
            await mill.signer.verify("GET", PATH, void)


async def test_a_tenant_client_signs_without_access_to_the_keys(mill: Mill) -> None:
    view = mill.as_tenant("ada")
    query = await view.signer.sign("GET", PATH, "ada")
    assert await mill.signer.verify("GET", PATH, query) == "ada"
    with pytest.raises(ConfigurationError, match="permission denied"):
        await view.database.rows("signing_keys")


@pytest.mark.parametrize("expires_in", [0, -1, 10**9, float("nan")])
async def test_an_expiry_outside_one_second_to_one_year_is_refused(
    mill: Mill, expires_in: float
) -> None:
    with pytest.raises(InvalidInput):
        await mill.signer.sign("GET", PATH, "ada", expires_in)
