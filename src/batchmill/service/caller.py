"""The caller of a request: with a key, with the session cookie of a page, or local without both."""

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request, Response
from fastapi.security import HTTPBearer
from starlette.requests import HTTPConnection

from batchmill.client import Client
from batchmill.domain.key import Key, Scope
from batchmill.errors import Forbidden, InvalidLink, NotAuthenticated, QuotaExceeded
from batchmill.service.addresses import counted_as, is_loopback
from batchmill.service.service import Service, of_request
from batchmill.service.sessions import (
    OWN_SITES,
    Session,
    SessionToken,
    require_csrf_token,
    require_own_site,
    start_session,
    token_in,
)

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
# Admin keys of this tenant belong to the operators of the system.
OPERATOR = "default"
# Prefixes of the headers in which proxies name the client or the origin of a request.
FORWARDED = (
    "akamai-", "cdn-", "cf-", "client-ip", "fastly-", "fly-", "forwarded", "incap-",
    "proxy-client-ip", "true-client-ip", "via", "wl-proxy-client-ip", "x-akamai-", "x-amz-cf-",
    "x-amzn-", "x-appengine-", "x-azure-", "x-client-ip", "x-cloud-trace-", "x-cluster-client-ip",
    "x-coming-from", "x-envoy-", "x-forwarded", "x-host", "x-original-", "x-originating-ip",
    "x-proxyuser-ip", "x-real-ip", "x-remote-", "x-rewrite-url", "x-sucuri-", "x-vercel-",
)  # fmt: skip

bearer = HTTPBearer(auto_error=False, description="A key created by `batchmill keys create`.")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request. `client` submits and reads as the caller's tenant, under row-level
    security. `key` is the id of the key, or None for a local caller without one. `csrf_token` and
    `ends_at` are set if the request came with a session cookie: the session expires at `ends_at`,
    by the clock of the event loop."""

    client: Client
    tenant: str
    scopes: frozenset[Scope]
    key: str | None
    csrf_token: str | None = None
    ends_at: float | None = None

    def require(self, scope: Scope, tenant: str | None = None) -> None:
        if scope not in self.scopes and Scope.ADMIN not in self.scopes:
            raise Forbidden(f"This needs a key with the scope {scope}.")
        if tenant not in (None, self.tenant):
            raise Forbidden(f"This affects all tenants, so it needs a key of the tenant {tenant}.")


async def caller_of(request: Request) -> Caller:
    """Authenticates the request once and stores the result in its state."""
    if not hasattr(request.state, "batchmill_caller"):
        request.state.batchmill_caller = await _authenticated(request)
    return request.state.batchmill_caller


async def sign_in(request: Request, response: Response, key: str) -> Caller:
    """Checks a key and starts a session: the response sets the cookies. Attempts with wrong keys
    are limited like other requests with wrong keys."""
    require_own_site(request)
    caller = await _by_key(request, key)
    assert caller.key is not None
    await start_session(request, response, caller.key)
    return caller


async def _authenticated(request: Request) -> Caller:
    if (given := await bearer(request)) is not None:
        return await _by_key(request, given.credentials)
    if (token := token_in(request, of_request(request))) is not None:
        return await _by_session(request, token)
    return await _without_key(request)


async def _by_key(request: Request, given: str) -> Caller:
    service, key, address = of_request(request), Key.read(given), client_address(request)
    if key is None:
        raise NotAuthenticated("This is not a valid key: keys look like bm_0ad62553_…")

    async def look() -> Any:
        # Read the tenant here: while this request waited, another one may have looked up the key.
        return await service.mill.engine.store.keys.admit(
            key.id, key.digest, tenant=service.guesses.tenant_of(key), address=counted_as(address)
        )

    found = await service.guesses.look_up(address, key, look)
    if found is None:
        raise NotAuthenticated(
            "This key is not valid: it was revoked, has expired or does not exist."
        )
    return _caller(service, found)


async def _by_session(request: Request, token: SessionToken) -> Caller:
    """The key of a session is checked on every request, so revoking the key ends the session."""
    service, address = of_request(request), client_address(request)

    async def look() -> Any:
        session = await Session.read(token.text, service.mill.signer)
        found = await service.mill.engine.store.keys.admit_session(
            session.key, tenant=service.guesses.tenant_of(token), address=counted_as(address)
        )
        if found is None:
            raise NotAuthenticated("The key of this session was revoked or has expired.")
        return {**found, "csrf_token": session.csrf, "ends_at": session.ends_at}

    try:
        found = await service.guesses.look_up(address, token, look)
    except InvalidLink:
        # Browsers also send cookies that a server on another port has set.
        return await _without_key(request)
    require_csrf_token(request, found["csrf_token"])
    return _caller(service, found)


async def _without_key(request: Request) -> Caller:
    service, address = of_request(request), counted_as(client_address(request))
    found = await service.mill.engine.store.keys.admit(None, None, tenant=None, address=address)
    # It is admitted until the first key is created.
    if found is None:
        raise NotAuthenticated("Send a key: Authorization: Bearer bm_…")
    if service.settings.require_key:
        raise NotAuthenticated("Send a key. Create one with `batchmill keys create`.")
    require_local(request)
    return _caller(service, found)


def _caller(service: Service, found: dict[str, Any]) -> Caller:
    if found["retry_after"] is not None:
        raise QuotaExceeded(
            "This tenant has reached its quota of requests per minute.",
            limit=found["limit"],
            retry_after=found["retry_after"],
        )
    return Caller(
        client=service.mill.as_tenant(found["tenant"], timeouts=service.timeouts),
        tenant=found["tenant"],
        scopes=frozenset(Scope(scope) for scope in found["scopes"]),
        key=found["key"],
        csrf_token=found.get("csrf_token"),
        ends_at=found.get("ends_at"),
    )


def require_local(request: Request) -> None:
    """Without a key, serves only this machine. Refuses requests that a local proxy forwards, and
    requests from pages of other sites in a local browser."""
    host = request.headers.get("host", "")
    is_here = is_loopback(peer_of(request)) and name_in(f"//{host}") in LOCAL_NAMES
    if not is_here or any(name.startswith(FORWARDED) for name in request.headers):
        raise Forbidden(
            "Requests without a key are accepted only from this machine. Create a key with "
            "`batchmill keys create`."
        )
    if request.headers.get("sec-fetch-site", "none") not in OWN_SITES:
        raise Forbidden("Requests without a key are not accepted from pages of other sites.")
    origin = request.headers.get("origin")
    if origin and origin.partition("://")[2] != host:
        raise Forbidden("Requests without a key are not accepted from pages of other sites.")


def name_in(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def client_address(request: Request) -> str:
    """The address of the client. Only trusted proxies can change it."""
    return address_of(request, of_request(request))


def address_of(connection: HTTPConnection, service: Service) -> str:
    forwarded = connection.headers.getlist("x-forwarded-for")
    peer = peer_of(connection)
    if forwarded and peer not in service.proxies:
        service.warn_of_unknown_proxy(peer)
    return service.proxies.client(peer, forwarded)


def peer_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else ""


def recognised(connection: HTTPConnection, service: Service) -> str | None:
    """The tenant of its key or session, if that was valid recently. Does not query the database."""
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    by_key = scheme.lower() == "bearer"
    credential = Key.read(given) if by_key else token_in(connection, service)
    return service.guesses.tenant_of(credential) if credential else None


def with_scope(scope: Scope, tenant: str | None = None) -> Any:
    """A dependency that returns the caller. Requires the scope, and the tenant if one is given."""

    async def caller(request: Request, _: Annotated[Any, Depends(bearer)]) -> Caller:
        found = await caller_of(request)
        found.require(scope, tenant)
        return found

    return Depends(caller)


Reader = Annotated[Caller, with_scope(Scope.READ)]
Submitter = Annotated[Caller, with_scope(Scope.SUBMIT)]
Administrator = Annotated[Caller, with_scope(Scope.ADMIN)]
Operator = Annotated[Caller, with_scope(Scope.ADMIN, OPERATOR)]
