"""Sessions of pages: signed cookies made from a key, and protection against other sites."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any
from uuid import UUID

import httpx
import psycopg
import pytest
from fastapi import APIRouter, Body, FastAPI, Request, Response
from starlette.requests import HTTPConnection

from batchmill import Mill, Quota, Scope
from batchmill.config import ServiceSettings
from batchmill.service import (
    EventStreams,
    GuardedRoute,
    LastEventId,
    Reader,
    Submitter,
    service_router,
    sign_in,
    sign_out,
)
from batchmill.service.caller import recognised
from tests.library.tools import later, until_event
from tests.service.conftest import OPTIONS, running
from tests.service.tools import problem

Session = httpx.AsyncClient
COOKIE, CSRF, HEADER = "batchmill_session", "batchmill_csrf", "X-CSRF-Token"


class SessionRoute(GuardedRoute):
    anonymous = True


def app_on(mill: Mill, settings: ServiceSettings) -> FastAPI:
    signing_in = APIRouter(route_class=SessionRoute)
    router = APIRouter(route_class=GuardedRoute)

    @signing_in.post("/session")
    async def begin(
        request: Request, response: Response, key: Annotated[str, Body(embed=True)]
    ) -> str:
        return (await sign_in(request, response, key)).tenant

    @signing_in.delete("/session", status_code=204)
    async def end(request: Request, response: Response) -> None:
        sign_out(request, response)

    @router.get("/me")
    async def me(caller: Reader) -> dict[str, Any]:
        return {"tenant": caller.tenant, "scopes": sorted(caller.scopes), "key": caller.key}

    @router.post("/doubles")
    async def double(caller: Submitter, numbers: list[int]) -> UUID:
        return (await caller.client.submit("double", numbers)).id

    @router.get("/doubles/{id}/stream")
    async def stream(
        caller: Reader, streams: EventStreams, id: UUID, after: LastEventId
    ) -> Response:
        return await streams.follow(caller, id, after)

    app = FastAPI()
    app.include_router(signing_in)
    app.include_router(router)
    app.include_router(service_router(mill, settings=settings, worker=OPTIONS))
    return app


@asynccontextmanager
async def serving(mill: Mill, **settings: Any) -> AsyncIterator[Session]:
    chosen = ServiceSettings(**settings)
    async with running(app_on(mill, chosen), chosen) as client:
        yield client


async def signed_in(client: Session, key: str, **headers: str) -> httpx.Response:
    answer = await client.post("/session", json={"key": key}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def with_csrf(client: Session) -> dict[str, str]:
    return {HEADER: client.cookies[CSRF]}


@pytest.fixture
async def key(shop: Mill) -> str:
    text, _ = await shop.keys.create("page", tenant="ada")
    return text


async def test_a_session_acts_as_its_key(shop: Mill, key: str) -> None:
    async with serving(shop) as client:
        assert problem(await client.get("/me")) == (401, "not_authenticated")
        assert (await signed_in(client, key)).json() == "ada"
        me = (await client.get("/me")).json()
        assert me == {"tenant": "ada", "scopes": ["read", "submit"], "key": key.split("_")[1]}
        made = await client.post("/doubles", json=[1, 2], headers=with_csrf(client))
        assert made.status_code == 200
        stream = await client.get(f"/doubles/{made.json()}/stream")
        assert "event: batch_completed" in stream.text
        # The service's own routes accept it too.
        assert (await client.get(f"/v1/batches/{made.json()}")).json()["total"] == 2


async def test_the_cookie_is_signed_and_hidden_from_scripts_and_other_sites(
    shop: Mill, key: str
) -> None:
    async with serving(shop, session_seconds=100) as client:
        answer = await signed_in(client, key)
        session, csrf = answer.headers.get_list("set-cookie")
        assert "HttpOnly" in session and "HttpOnly" not in csrf
        for cookie in (session, csrf):
            assert "SameSite=lax" in cookie and "Max-Age=100" in cookie and "Path=/" in cookie
            assert "Secure" not in cookie and "Domain" not in cookie
        assert key.split("_", 2)[2] not in answer.headers["set-cookie"]
        token = client.cookies[COOKIE]
        for forged in (token[:-1], "A" + token, token.replace(".", "..", 1), "x", "é", f"{token}A"):
            cookies = f"{COOKIE}={forged}".encode()
            client.cookies.clear()
            assert problem(await client.get("/me", headers={b"Cookie": cookies}))[0] == 401


@pytest.mark.parametrize(
    "settings", [{"public_url": "https://a.example"}, {"trusted_proxies": "127.0.0.1"}]
)
async def test_behind_https_the_cookie_is_only_sent_to_this_host_and_encrypted(
    shop: Mill, key: str, settings: dict[str, str]
) -> None:
    async with serving(shop, **settings) as client:
        proto = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"}
        answer = await signed_in(client, key, **proto)
        for cookie in answer.headers.get_list("set-cookie"):
            assert cookie.startswith("__Host-batchmill_") and "Secure" in cookie
        token = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
        for name, status in ((f"__Host-{COOKIE}", 200), (COOKIE, 401)):
            cookie = {"Cookie": f"{name}={token}"} | proto
            client.cookies.clear()
            assert (await client.get("/me", headers=cookie)).status_code == status


async def test_a_token_cookie_of_another_session_does_not_matter(shop: Mill, key: str) -> None:
    """After a change to https, a browser sends the cookies of both names."""
    async with serving(shop, public_url="https://a.example") as client:
        answer = await signed_in(client, key)
        session, csrf = (
            cookie.partition("=")[2].partition(";")[0]
            for cookie in answer.headers.get_list("set-cookie")
        )
        stale = f"{CSRF}=stale; {COOKIE}=stale"
        own = f"__Host-{CSRF}={csrf}; __Host-{COOKIE}={session}"
        for cookies in (f"{stale}; {own}", f"{own}; {stale}", f"{own}; __Host-{CSRF}=stale"):
            client.cookies.clear()
            headers = {"Cookie": cookies, HEADER: csrf}
            assert (await client.post("/doubles", json=[1], headers=headers)).status_code == 200
            refused = await client.post("/doubles", json=[1], headers=headers | {HEADER: "stale"})
            assert problem(refused) == (403, "forbidden")
            assert f"the cookie __Host-{CSRF}." in refused.json()["detail"]


async def test_a_client_cannot_claim_https_without_a_trusted_proxy(shop: Mill, key: str) -> None:
    async with serving(shop) as client:
        answer = await signed_in(client, key, **{"X-Forwarded-Proto": "https"})
        assert "Secure" not in answer.headers["set-cookie"]


async def test_revoking_the_key_ends_its_sessions_at_once(shop: Mill, key: str) -> None:
    other, _ = await shop.keys.create("other", tenant="ada")
    async with serving(shop, keep_alive=0.05) as client:
        await signed_in(client, key)
        batch = (await client.post("/doubles", json=[1], headers=with_csrf(client))).json()
        await shop.batch(batch).wait()
        held = await shop.submit("hold", [1], tenant="ada")
        async with client.stream("GET", f"/doubles/{held.id}/stream") as stream:
            await shop.keys.revoke(key.split("_")[1])
            assert problem(await client.get("/me")) == (401, "not_authenticated")
            # The open stream ends soon after.
            async with asyncio.timeout(20):
                async for _ in stream.aiter_bytes():
                    pass
        await signed_in(client, other)
        assert (await client.get("/me")).status_code == 200
        await held.cancel()


async def test_a_session_ends_with_its_key_or_its_own_time(
    shop: Mill, key: str, dsn: str, sql: psycopg.Connection[Any]
) -> None:
    async with serving(shop, session_seconds=3_600) as client:
        await signed_in(client, key)
        sql.execute("update batchmill.api_keys set expires_at = batchmill.clock()")
        assert problem(await client.get("/me")) == (401, "not_authenticated")
        sql.execute("update batchmill.api_keys set expires_at = null")
        assert (await client.get("/me")).status_code == 200
        cookies = dict(client.cookies)
    async with serving(shop.on(later(dsn, "61min"))) as client:
        client.cookies.update(cookies)
        answer = await client.get("/me")
        assert problem(answer) == (401, "not_authenticated")
        assert "expired" in answer.json()["detail"]


async def test_a_stream_ends_with_its_session_and_continues_in_the_next_one(
    shop: Mill, key: str
) -> None:
    async with serving(shop, session_seconds=3) as client:
        batch = await shop.submit("hold", [1], tenant="ada")
        await until_event(batch, "job_started")
        path = f"/doubles/{batch.id}/stream"
        await signed_in(client, key)
        # The body ends properly; httpx raises if it is cut off.
        before = await client.get(path)
        assert "event: job_started" in before.text
        await batch.cancel()
        await batch.wait()
        assert problem(await client.get(path)) == (401, "not_authenticated")
        await signed_in(client, key)
        last = re.findall(r"^id: (\d+)$", before.text, re.MULTILINE)[-1]
        after = await client.get(path, headers={"Last-Event-ID": last})
        numbers = re.findall(r"^id: (\d+)$", before.text + after.text, re.MULTILINE)
        assert numbers == [str(event.number) async for event in batch.events()]


async def test_a_session_has_the_scopes_of_its_key(shop: Mill) -> None:
    key, _ = await shop.keys.create("reads", tenant="ada", scopes=[Scope.READ])
    async with serving(shop) as client:
        await signed_in(client, key)
        answer = await client.post("/doubles", json=[1], headers=with_csrf(client))
        assert problem(answer) == (403, "forbidden")


async def test_signing_out_removes_the_cookies(shop: Mill, key: str) -> None:
    async with serving(shop) as client:
        await signed_in(client, key)
        foreign = await client.delete("/session", headers={"Origin": "https://evil.example"})
        assert problem(foreign) == (403, "forbidden")
        assert (await client.delete("/session")).status_code == 204
        assert not client.cookies
        assert (await client.get("/me")).status_code == 401


# Requests that other sites make


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {HEADER: ""},
        {HEADER: "x"},
        {HEADER: "right", "Sec-Fetch-Site": "cross-site"},
        {HEADER: "right", "Sec-Fetch-Site": "same-site"},
        {HEADER: "right", "Origin": "https://evil.example"},
        {HEADER: "right", "Origin": "null"},
    ],
)
async def test_a_request_with_a_cookie_that_changes_something_needs_the_token_and_the_own_site(
    shop: Mill, key: str, sql: psycopg.Connection[Any], headers: dict[str, str]
) -> None:
    async with serving(shop) as client:
        await signed_in(client, key)
        sent = {name: text.replace("right", client.cookies[CSRF]) for name, text in headers.items()}
        assert problem(await client.post("/doubles", json=[1], headers=sent)) == (403, "forbidden")
        assert sql.execute("select count(*) from batchmill.batches").fetchone() == (0,)


async def test_the_token_of_another_session_is_refused(shop: Mill, key: str) -> None:
    async with serving(shop) as client:
        await signed_in(client, key)
        other = client.cookies[CSRF]
        await signed_in(client, key)
        assert client.cookies[CSRF] != other
        answer = await client.post("/doubles", json=[1], headers={HEADER: other})
        assert problem(answer) == (403, "forbidden")


@pytest.mark.parametrize("site", ["same-origin", "none"])
async def test_pages_of_the_own_site_are_accepted(shop: Mill, key: str, site: str) -> None:
    async with serving(shop, public_url="http://batches.example") as client:
        await signed_in(client, key, **{"Sec-Fetch-Site": site})
        here = str(client.base_url).rstrip("/")
        for origin in (here, "http://batches.example"):
            headers = with_csrf(client) | {"Sec-Fetch-Site": site, "Origin": origin}
            answer = await client.post("/doubles", json=[1], headers=headers)
            assert answer.status_code == 200


async def test_a_request_with_a_key_needs_no_token(shop: Mill, key: str) -> None:
    async with serving(shop) as client:
        await signed_in(client, key)
        headers = {"Authorization": f"Bearer {key}"}
        assert (await client.post("/doubles", json=[1], headers=headers)).status_code == 200


async def test_another_site_cannot_sign_a_visitor_in(shop: Mill, key: str) -> None:
    async with serving(shop) as client:
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
            answer = await client.post("/session", json={"key": key}, headers=headers)
            assert problem(answer) == (403, "forbidden")
            assert not client.cookies


# Wrong keys and foreign cookies


async def test_guessing_keys_is_limited(shop: Mill, key: str) -> None:
    async with serving(shop, wrong_keys_per_minute=3) as client:
        for number in range(5):
            wrong = key[:-6] + f"{number:06}"
            answer = await client.post("/session", json={"key": wrong})
            expected = (401, "not_authenticated") if number < 3 else (429, "too_many_tries")
            assert problem(answer) == expected
        assert problem(await client.post("/session", json={"key": "x"}))[0] == 401


async def test_ended_sessions_do_not_count_as_wrong_keys(shop: Mill, key: str) -> None:
    other, _ = await shop.keys.create("other", tenant="ada")
    async with serving(shop, wrong_keys_per_minute=2) as client:
        await signed_in(client, key)
        await shop.keys.revoke(key.split("_")[1])
        for _ in range(5):
            assert problem(await client.get("/me")) == (401, "not_authenticated")
        await signed_in(client, other)


async def test_a_foreign_cookie_does_not_close_the_service_to_local_callers(shop: Mill) -> None:
    """Browsers send the cookies of a server on another port of the same host."""
    async with serving(shop, wrong_keys_per_minute=2) as client:
        client.cookies.set(COOKIE, "eA.1.1.x")
        for _ in range(5):
            assert (await client.get("/me")).json()["tenant"] == "default"


async def test_requests_of_a_session_count_for_its_tenant(shop: Mill, key: str) -> None:
    """Both for the quota of requests, and for the share of the event loop."""
    app = app_on(shop, ServiceSettings())
    async with running(app) as client:
        await signed_in(client, key)
        await shop.keys.set_quota(Quota(tenant="ada", requests_per_minute=1))
        statuses = {(await client.get("/me")).status_code for _ in range(3)}
        assert 429 in statuses
        sent = [(b"cookie", f"{COOKIE}={client.cookies[COOKIE]}".encode())]
        scope = {"type": "http", "headers": sent, "scheme": "http"}
        assert recognised(HTTPConnection(scope), app.state.batchmill) == "ada"
