"""Signed links and tokens: every byte counts, keys are exchanged while links are out."""

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
    return verify_link(KEYS, method, path, query, now)


def mutations(text: str) -> Iterator[str]:
    """Every character changed, left out or doubled, and everything in front and behind."""
    for place, old in enumerate(text):
        for new in ALPHABET:
            if new != old:
                yield text[:place] + new + text[place + 1 :]
        yield text[:place] + text[place + 1 :]
    for new in ALPHABET:
        yield new + text
        yield text + new


def test_a_link_lets_in_whom_it_was_made_for_until_it_expires() -> None:
    query = sign_link(KEYS[1], "GET", PATH, "ada", 1000)
    assert verify("GET", PATH, query) == "ada"
    with pytest.raises(LinkExpired):
        verify("GET", PATH, query, now=1000)


def test_every_byte_of_a_link_counts() -> None:
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


def test_a_link_without_one_of_its_parts_is_refused() -> None:
    query = sign_link(KEYS[0], "GET", PATH, "ada", 1000)
    for name in query:
        with pytest.raises(InvalidLink, match=name):
            verify("GET", PATH, {k: v for k, v in query.items() if k != name})


def test_parts_cannot_be_moved_over_to_their_neighbours() -> None:
    query = sign_link(KEYS[0], "GET", "/a", "ada", 1000)
    with pytest.raises(InvalidLink):
        verify("GET", "/aada", query | {"tenant": ""})
    with pytest.raises(InvalidLink):
        verify("GET/a", "", query)


def test_a_key_that_is_no_longer_kept_is_not_believed() -> None:
    query = sign_link(SigningKey(0, b"forgotten"), "GET", PATH, "ada", 1000)
    with pytest.raises(InvalidLink):
        verify("GET", PATH, query)


def test_a_key_does_not_show_in_a_traceback() -> None:
    assert "newer" not in repr(KEYS)


@given(st.text(), st.text(), st.text())
def test_any_tenant_goes_through_an_address(tenant: str, method: str, path: str) -> None:
    query = sign_link(KEYS[0], method, path, tenant, 1000)
    sent = dict(
        parse_qsl(
            urlencode(query, errors="surrogatepass"), keep_blank_values=True, errors="surrogatepass"
        )
    )
    assert verify(method, path, sent) == tenant


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_a_token_carries_a_text(text: str) -> None:
    token = sign_text(KEYS[0], "cursor", text)
    assert set(token) <= set(string.ascii_letters + string.digits + "-_.")
    assert check_text(KEYS, "cursor", token, now=10**12) == text


def test_every_byte_of_a_token_counts() -> None:
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
def test_what_was_not_made_here_is_refused(token: str) -> None:
    with pytest.raises(InvalidLink):
        check_text(KEYS, "cursor", token, 0)


async def test_a_signer_makes_its_key_when_it_needs_one(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    query = await mill.signer.sign("GET", PATH, "ada")
    assert await mill.signer.verify("GET", PATH, query) == "ada"
    assert one(sql, "select count(*), min(length(secret)) from batchmill.signing_keys") == (1, 32)
    assert await mill.on().signer.verify("GET", PATH, query) == "ada"


async def test_a_signer_goes_by_the_clock_of_the_database(mill: Mill, dsn: str) -> None:
    query = await mill.signer.sign("GET", PATH, "ada", expires_in=3600)
    token = await mill.signer.sign_text("stream", "batch", expires_in=60)
    assert await mill.signer.check_text("stream", token) == "batch"
    async with Mill(later(dsn, "3602s")) as hour_later:
        with pytest.raises(LinkExpired):
            await hour_later.signer.verify("GET", PATH, query)
        with pytest.raises(LinkExpired):
            await hour_later.signer.check_text("stream", token)


async def test_keys_are_exchanged_while_links_are_out(mill: Mill) -> None:
    old = await mill.signer.sign("GET", PATH, "ada")
    await mill.signer.rotate()
    new = await mill.signer.sign("GET", PATH, "ada")
    assert old["key"] != new["key"]
    assert await mill.signer.verify("GET", PATH, old) == "ada"
    await mill.signer.rotate(keep=1)
    for void in (old, new):
        with pytest.raises(InvalidLink):
            await mill.signer.verify("GET", PATH, void)


async def test_a_tenants_view_signs_too_but_sees_no_key(mill: Mill) -> None:
    view = mill.as_tenant("ada")
    query = await view.signer.sign("GET", PATH, "ada")
    assert await mill.signer.verify("GET", PATH, query) == "ada"
    with pytest.raises(ConfigurationError, match="permission denied"):
        await view.database.rows("signing_keys")


@pytest.mark.parametrize("expires_in", [0, -1, 10**9, float("nan")])
async def test_a_link_lasts_from_a_second_to_a_year(mill: Mill, expires_in: float) -> None:
    with pytest.raises(InvalidInput):
        await mill.signer.sign("GET", PATH, "ada", expires_in)
