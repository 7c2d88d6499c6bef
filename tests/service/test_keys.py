"""API keys: what they allow, and that their secrets are neither logged nor stored."""

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from batchmill import Mill
from batchmill.config import ServiceSettings
from batchmill.domain.key import Key
from batchmill.errors import ConfigurationError, DatabaseUnavailable
from batchmill.service import create_app, guesses
from tests.cli.conftest import Cli
from tests.library.tools import later, one, rows
from tests.service.conftest import OPTIONS, Served, running
from tests.service.shop import shop_on
from tests.service.tools import SharedService, Tenant, make_key, problem, submitted

KEY = re.compile(r"bm_[0-9a-z]{8}_[0-9A-Za-z_-]{43}")


async def test_keys_are_created_listed_and_revoked(dsn: str, sql: psycopg.Connection[Any]) -> None:
    cli = Cli(dsn)
    (text,) = await cli.lines("keys", "create", "for ada", "--tenant", "ada", "--expires", "90d")
    assert KEY.fullmatch(text)
    id = text.split("_")[1]
    (record,) = await cli.json("keys")
    assert (record["id"], record["name"], record["tenant"]) == (id, "for ada", "ada")
    assert record["scopes"] == ["read", "submit"]
    assert text.split("_", 2)[2] not in json.dumps(record)
    shown = "\n".join(await cli.lines("keys", "list"))
    assert id in shown and text not in shown
    assert "revoked" in (await cli.lines("keys", "revoke", id))[0]
    assert "revoked" in "\n".join(await cli.lines("keys"))
    assert (await cli("keys", "revoke", "nothing")).exit_code == 3


@pytest.mark.parametrize(
    "words",
    [("--scope", "all"), ("--expires", "soon"), ("--expires", "-1d"), ("--tenant", "")],
)
async def test_a_key_with_invalid_options_is_not_created(
    words: tuple[str, str], dsn: str, sql: psycopg.Connection[Any]
) -> None:
    assert (await Cli(dsn)("keys", "create", "x", *words)).exit_code == 2
    assert one(sql, "select count(*) from batchmill.api_keys") == (0,)


async def test_quotas_are_set_listed_and_deleted(dsn: str) -> None:
    cli = Cli(dsn)
    assert await cli.lines("quotas") == ["No tenant has a quota."]
    await cli.lines("quotas", "set", "ada", "--requests", "60", "--storage", "10MB")
    (quota,) = await cli.json("quotas")
    assert (quota["tenant"], quota["requests_per_minute"], quota["active_jobs"]) == (
        "ada",
        60,
        None,
    )
    assert quota["storage_bytes"] in (10_000_000, 10 * 1_048_576)
    for bad in (("--requests", "0"), ("--active", "-1"), ("--storage", "much")):
        assert (await cli("quotas", "set", "bob", *bad)).exit_code == 2
    await cli.lines("quotas", "delete", "ada")
    assert (await cli("quotas", "delete", "ada")).exit_code == 3
    assert await cli.json("quotas") == []


async def test_a_revoked_key_is_refused(service: SharedService, ada: Tenant) -> None:
    key = service.key(ada.name)
    async with service.client(key) as client:
        assert (await client.get("/v1/batches")).status_code == 200
        await Cli(service.dsn).lines("keys", "revoke", key.split("_")[1])
        assert problem(await client.get("/v1/batches")) == (401, "not_authenticated")


async def test_a_stream_ends_when_its_key_is_revoked(
    served: Served, sql: psycopg.Connection[Any]
) -> None:
    revoked, valid = make_key(sql, "ada"), make_key(sql, "ada")
    async with served(keep_alive=0.05) as client:
        client.headers["Authorization"] = f"Bearer {valid}"
        events = (await submitted(client, "hold", [1]))["links"]["events"]
        with_revoked = {"Authorization": f"Bearer {revoked}"}
        async with (
            client.stream("GET", events, headers=with_revoked) as ending,
            client.stream("GET", events) as staying,
        ):
            sql.execute(
                "update batchmill.api_keys set revoked_at = now() where id = %s",
                [revoked.split("_")[1]],
            )
            assert [line async for line in ending.aiter_lines()]
            alive = staying.aiter_lines()
            for _ in range(20):
                await anext(alive)


async def test_an_expired_key_is_refused(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any]
) -> None:
    """The server's clock is two hours ahead of the clock that created the keys."""
    expired, valid = make_key(sql, "ada", expires_in="1 h"), make_key(sql, "ada", expires_in="3 h")
    async with running(create_app(shop_on(later(dsn, "2h"), tmp_path))) as client:
        client.headers["Authorization"] = f"Bearer {expired}"
        assert problem(await client.get("/v1/batches")) == (401, "not_authenticated")
        client.headers["Authorization"] = f"Bearer {valid}"
        assert (await client.get("/v1/batches")).status_code == 200


async def test_a_key_with_the_secret_of_another_key_is_refused(
    service: SharedService, ada: Tenant
) -> None:
    first, second = (Key.read(service.key(ada.name)) for _ in range(2))
    assert first and second
    mixed = Key(first.id, second.secret).text
    async with service.client(mixed) as client:
        assert problem(await client.get("/v1/batches")) == (401, "not_authenticated")


async def test_the_last_use_of_a_key_is_recorded(service: SharedService, ada: Tenant) -> None:
    await ada.client.get("/v1/batches")
    used = "select count(last_used_at) from batchmill.api_keys where tenant = %s"
    assert one(service.sql, used, ada.name) == (1,)


async def test_secrets_are_neither_logged_nor_stored(
    shop: Mill, sql: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Ignores the logs of the test's own HTTP client."""
    caplog.set_level(logging.DEBUG)
    key, wrong = make_key(sql, "ada"), Key.new()
    secrets = [key.split("_", 2)[2], wrong.secret]
    async with running(create_app(shop, worker=OPTIONS)) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        batch = (await client.post("/v1/batches", json={"task": "double", "items": [1, 13]})).json()
        await client.get(batch["links"]["results"])
        link = (await client.post(f"{batch['links']['events']}/link")).json()["url"]
        secrets.append(link.partition("signature=")[2])
        assert (await client.get(link)).status_code == 200
        await client.post("/v1/batches", json={"task": "double", "items": ["x"]})
        await client.post("/v1/batches", content=b"{")
        client.headers["Authorization"] = f"Bearer {wrong.text}"
        assert (await client.get("/v1/batches")).status_code == 401
    messages = [
        r.getMessage() for r in caplog.records if not r.name.startswith(("httpx", "httpcore"))
    ]
    assert messages
    everything = "\n".join(messages) + everything_in(sql)
    assert batch["id"] in everything
    for secret in secrets:
        assert len(secret) > 40
        assert secret not in everything


def everything_in(sql: psycopg.Connection[Any]) -> str:
    tables = rows(
        sql,
        "select format('%%I.%%I', schemaname, tablename) from pg_tables where schemaname = 'batchmill'",
    )
    return "\n".join(str(row) for (table,) in tables for row in rows(sql, f"select * from {table}"))


async def test_local_requests_are_served_while_no_key_exists(client: httpx.AsyncClient) -> None:
    port = client.base_url.port
    assert (await client.get("/v1/batches")).status_code == 200
    for host in (f"localhost:{port}", f"[::1]:{port}", "LOCALHOST", "127.0.0.1"):
        assert (await client.get("/v1/batches", headers={"Host": host})).status_code == 200
    own = {"Origin": f"http://127.0.0.1:{port}"}
    assert (await client.get("/v1/batches", headers=own)).status_code == 200


FOREIGN = [
    {"X-Forwarded-For": "127.0.0.1"},
    {"X-Forwarded-Host": "example.com"},
    {"X-Forwarded-Proto": "https"},
    {"X-Real-IP": "127.0.0.1"},
    {"Forwarded": "for=127.0.0.1"},
    {"Via": "1.1 proxy"},
    {"X-Client-IP": "127.0.0.1"},
    {"CF-Connecting-IP": "127.0.0.1"},
    {"True-Client-IP": "127.0.0.1"},
    {"Fastly-Client-IP": "127.0.0.1"},
    {"X-Cluster-Client-IP": "127.0.0.1"},
    {"X-Original-Host": "example.com"},
    {"X-Envoy-External-Address": "127.0.0.1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none", "Origin": "http://example.com"},
    {"Host": "example.com"},
    {"Host": "127.0.0.1.example.com"},
    {"Host": "localhost.example.com:80"},
    {"Host": "192.0.2.1"},
    {"Host": "["},
    {"Host": ""},
    {"Origin": "https://example.com"},
    {"Origin": "null"},
    {"Origin": "http://localhost"},
    {"Origin": "["},
]


async def test_other_requests_are_refused_while_no_key_exists(client: httpx.AsyncClient) -> None:
    for headers in FOREIGN:
        answer = await client.get("/v1/batches", headers=headers)
        assert problem(answer) == (403, "forbidden"), headers


async def test_the_first_key_makes_keys_required(
    client: httpx.AsyncClient, sql: psycopg.Connection[Any]
) -> None:
    assert (await client.get("/v1/batches")).status_code == 200
    key = make_key(sql, "default")
    assert problem(await client.get("/v1/batches")) == (401, "not_authenticated")
    sql.execute("update batchmill.api_keys set revoked_at = now()")
    assert problem(await client.get("/v1/batches")) == (401, "not_authenticated")
    headers = {"Authorization": f"Bearer {key}"}
    answer = await client.get("/v1/batches", headers=headers)
    assert problem(answer) == (401, "not_authenticated")


PROXIES = ("127.0.0.0/8", "10.0.0.0/8", "2001:db8::/32")
FORWARDED = [
    ([], "127.0.0.1"),
    (["192.0.2.7"], "192.0.2.7"),
    (["6.6.6.6, 192.0.2.7"], "192.0.2.7"),
    (["6.6.6.6, 192.0.2.7", "10.1.2.3"], "192.0.2.7"),
    (["10.1.2.3"], "10.1.2.3"),
    (["6.6.6.6, unknown"], "127.0.0.1"),
    (["192.0.2.7\N{LATIN SMALL LETTER E WITH ACUTE}"], "127.0.0.1"),
    (["2001:db9::1, 2001:db8::1"], "2001:db9::1"),
]


async def test_only_trusted_proxies_can_set_the_client_address(
    served: Served,
    sql: psycopg.Connection[Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Logs every address, and not one line per minute.
    monkeypatch.setattr(guesses, "LINE_SECONDS", 1e-9)
    make_key(sql, "ada")
    async with served() as client:
        assert await logged_address(client, ["192.0.2.7"], caplog) == "127.0.0.1"
    async with served(trusted_proxies=PROXIES) as client:
        for forwarded, address in FORWARDED:
            assert await logged_address(client, forwarded, caplog) == address, forwarded


async def logged_address(
    client: httpx.AsyncClient, forwarded: list[str], caplog: pytest.LogCaptureFixture
) -> str:
    """Sends an invalid key. Returns the address that the log names."""
    headers: Any = [(b"X-Forwarded-For", each.encode("latin-1")) for each in forwarded]
    key = (b"Authorization", f"Bearer {Key.new().text}".encode())
    answer = await client.get("/v1/batches", headers=[key, *headers])
    assert problem(answer) == (401, "not_authenticated")
    line = re.search(r"A client at (.+) sent an invalid key\.", caplog.messages[-1])
    assert line
    return line[1]


def test_trusted_proxies_that_are_not_networks_are_refused(shop: Mill) -> None:
    with pytest.raises(ConfigurationError, match="BATCHMILL_TRUSTED_PROXIES must be networks"):
        create_app(shop, settings=ServiceSettings(trusted_proxies=("proxy.example.com",)))


async def test_other_origins_are_allowed_only_if_they_are_configured(
    served: Served, sql: psycopg.Connection[Any]
) -> None:
    headers = {
        "Authorization": f"Bearer {make_key(sql, 'ada')}",
        "Origin": "https://example.com",
    }
    async with served() as client:
        answer = await client.get("/v1/batches", headers=headers)
        assert "access-control-allow-origin" not in answer.headers
    async with served(cors_origins=("https://example.com",)) as client:
        answer = await client.get("/v1/batches", headers=headers)
        assert answer.headers["access-control-allow-origin"] == "https://example.com"
        other = await client.get(
            "/v1/batches", headers=headers | {"Origin": "https://evil.example"}
        )
        assert "access-control-allow-origin" not in other.headers


async def get_with_key(client: httpx.AsyncClient, key: str | None = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key or Key.new().text}"}
    return await client.get("/v1/batches", headers=headers)


async def test_invalid_keys_are_rate_limited_and_then_not_looked_up(
    served: Served, sql: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    used, unused, revoked = (make_key(sql, "ada") for _ in range(3))
    proxies = ("127.0.0.0/8",)
    async with served(wrong_keys_per_minute=5, trusted_proxies=proxies) as client:
        for key in (used, revoked):
            assert (await get_with_key(client, key)).status_code == 200
        sql.execute(
            "update batchmill.api_keys set revoked_at = now() where id = %s", [revoked[3:11]]
        )
        with caplog.at_level(logging.WARNING, "batchmill.service"):
            statuses = [(await get_with_key(client)).status_code for _ in range(4)]
            statuses += [(await get_with_key(client, revoked)).status_code for _ in range(10)]
        assert statuses == [401] * 5 + [429] * 9
        assert len([each for each in caplog.records if "invalid key" in each.getMessage()]) == 1
        answer = await get_with_key(client)
        assert problem(answer) == (429, "too_many_tries")
        assert 1 <= int(answer.headers["Retry-After"]) <= 12
        # Keys that were valid recently still work, and other addresses are not limited.
        assert (await get_with_key(client, used)).status_code == 200
        assert (await get_with_key(client, unused)).status_code == 429
        elsewhere = {"Authorization": f"Bearer {unused}", "X-Forwarded-For": "192.0.2.7"}
        assert (await client.get("/v1/batches", headers=elsewhere)).status_code == 200


async def test_parallel_guesses_are_counted_before_the_lookup(
    served: Served, sql: psycopg.Connection[Any]
) -> None:
    make_key(sql, "ada")
    async with served(wrong_keys_per_minute=5) as client:
        answers = await asyncio.gather(*(get_with_key(client) for _ in range(100)))
        assert Counter(each.status_code for each in answers) == {401: 5, 429: 95}


async def test_parallel_requests_with_a_valid_key_count_as_one_guess(
    served: Served, sql: psycopg.Connection[Any]
) -> None:
    valid, other, revoked = make_key(sql, "ada"), make_key(sql, "ada"), Key.new().text
    async with served(wrong_keys_per_minute=5) as client:
        for key in (valid, other):
            answers = await asyncio.gather(*(get_with_key(client, key) for _ in range(100)))
            assert Counter(each.status_code for each in answers) == {200: 100}
        answers = await asyncio.gather(*(get_with_key(client, revoked) for _ in range(100)))
        assert Counter(each.status_code for each in answers) == {401: 5, 429: 95}


class Lookups:
    """Looks keys up as the database does, and counts the lookups."""

    def __init__(self, *valid: Key):
        self.valid = valid
        self.count = 0

    def of(self, key: Key) -> Callable[[], Awaitable[dict[str, str] | None]]:
        async def look() -> dict[str, str] | None:
            self.count += 1
            return {"tenant": "ada"} if key in self.valid else None

        return look


async def test_a_limited_number_of_valid_keys_is_exempt_from_the_rate_limit() -> None:
    known = guesses.Guesses(1, clock=lambda: 1_000.0)
    key, other, here = Key.new(), Key.new(), "10.0.0.1"
    more = [Key.new() for _ in range(guesses.MOST_REMEMBERED)]
    lookups = Lookups(key, *more)
    assert await known.look_up(here, key, lookups.of(key))
    assert await known.look_up(here, other, lookups.of(other)) is None
    assert (known.tenant_of(key), known.tenant_of(other)) == ("ada", None)
    assert await known.look_up(here, key, lookups.of(key))
    with pytest.raises(guesses.TooManyTries):
        await known.look_up(here, other, lookups.of(other))
    assert lookups.count == 3
    for each in more:
        await known.look_up("10.0.0.2", each, Lookups(each).of(each))
    with pytest.raises(guesses.TooManyTries):
        await known.look_up(here, key, lookups.of(key))


async def test_a_failed_lookup_does_not_count_as_a_guess() -> None:
    async def fail() -> None:
        raise DatabaseUnavailable("Postgres does not answer.")

    known = guesses.Guesses(1)
    for _ in range(10):
        with pytest.raises(DatabaseUnavailable):
            await known.look_up("10.0.0.1", Key.new(), fail)


async def test_an_untrusted_proxy_is_logged_once(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    for proxies, lines in (((), 1), (("127.0.0.0/8",), 0)):
        caplog.clear()
        async with served(trusted_proxies=proxies) as client:
            for _ in range(3):
                headers = {
                    "Authorization": f"Bearer {Key.new().text}",
                    "X-Forwarded-For": "6.6.6.6",
                }
                await client.get("/v1/batches", headers=headers)
        assert caplog.text.count("not in BATCHMILL_TRUSTED_PROXIES") == lines
