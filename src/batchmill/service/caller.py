"""Who calls: whose key it is, what that may do, and where it may be used."""

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.requests import HTTPConnection

from batchmill.client import Client
from batchmill.domain.key import Key, Scope
from batchmill.errors import Forbidden, NotAuthenticated, QuotaExceeded
from batchmill.service.addresses import counted_as, is_loopback
from batchmill.service.service import Service, of_request

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
# Whose admin keys are those of the people who run the system.
OPERATOR = "default"
# How the headers begin in which proxies say whom they speak for, and where the request came from.
FORWARDED = (
    "akamai-", "cdn-", "cf-", "client-ip", "fastly-", "fly-", "forwarded", "incap-",
    "proxy-client-ip", "true-client-ip", "via", "wl-proxy-client-ip", "x-akamai-", "x-amz-cf-",
    "x-amzn-", "x-appengine-", "x-azure-", "x-client-ip", "x-cloud-trace-", "x-cluster-client-ip",
    "x-coming-from", "x-envoy-", "x-forwarded", "x-host", "x-original-", "x-originating-ip",
    "x-proxyuser-ip", "x-real-ip", "x-remote-", "x-rewrite-url", "x-sucuri-", "x-vercel-",
)  # fmt: skip
# What a browser says of a request that a page of this very service makes, or its user.
OWN_SITES = ("same-origin", "none")

bearer = HTTPBearer(auto_error=False, description="A key made by `batchmill keys create`.")


@dataclass(frozen=True, slots=True)
class Caller:
    """`client` acts as the caller's tenant; routes have no other access to jobs."""

    client: Client
    tenant: str
    scopes: frozenset[Scope]
    key: str | None

    def require(self, scope: Scope, tenant: str | None = None) -> None:
        if scope not in self.scopes and Scope.ADMIN not in self.scopes:
            raise Forbidden(f"This needs a key with the scope {scope}.")
        if tenant not in (None, self.tenant):
            raise Forbidden(f"This concerns all tenants: it needs a key of the tenant {tenant}.")


async def caller_of(request: Request) -> Caller:
    """Found out once a request, whoever asks first."""
    if not hasattr(request.state, "batchmill_caller"):
        given = await bearer(request)
        request.state.batchmill_caller = await _admit(request, given and given.credentials)
    return request.state.batchmill_caller


async def _admit(request: Request, given: str | None) -> Caller:
    service = of_request(request)
    address = client_address(request)
    key = Key.read(given) if given else None
    if given and key is None:
        raise NotAuthenticated("That is no key: keys begin with bm_.")

    async def admit() -> Any:
        # When it is its turn: another request with the key may have found the tenant by then.
        tenant = key and service.guesses.tenant_of(key)
        return await service.mill.engine.store.keys.admit(
            key and key.id, key and key.digest, tenant=tenant, address=counted_as(address)
        )

    if key is None:
        found = await admit()
        _require_served_without_key(request, is_open=found is not None)
    else:
        found = await service.guesses.look_up(address, key, admit)
    if found is None:
        raise NotAuthenticated("This key is not valid: it was revoked, has expired, or never was.")
    if found["retry_after"] is not None:
        raise QuotaExceeded(
            "This tenant has made as many requests as it may in a minute.",
            limit=found["limit"],
            retry_after=found["retry_after"],
        )
    return Caller(
        client=service.mill.as_tenant(found["tenant"], timeouts=service.timeouts),
        tenant=found["tenant"],
        scopes=frozenset(Scope(scope) for scope in found["scopes"]),
        key=found["key"],
    )


def _require_served_without_key(request: Request, *, is_open: bool) -> None:
    """`is_open` while no key was ever made."""
    if not is_open:
        raise NotAuthenticated("Send a key: Authorization: Bearer bm_…")
    if of_request(request).settings.require_key:
        raise NotAuthenticated("Send a key: make one with `batchmill keys create`.")
    require_local(request)


def require_local(request: Request) -> None:
    """Without any key, only this machine is served; not what a proxy on it passes on from
    elsewhere, and no page of another site that a browser here has open."""
    host = request.headers.get("host", "")
    is_here = is_loopback(peer_of(request)) and name_in(f"//{host}") in LOCAL_NAMES
    if not is_here or any(name.startswith(FORWARDED) for name in request.headers):
        raise Forbidden(
            "Without a key only this machine is served: make one with `batchmill keys create`."
        )
    if request.headers.get("sec-fetch-site", "none") not in OWN_SITES:
        raise Forbidden("Without a key, pages of other sites are not served.")
    origin = request.headers.get("origin")
    if origin and origin.partition("://")[2] != host:
        raise Forbidden("Without a key, pages of other sites are not served.")


def name_in(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def client_address(request: Request) -> str:
    """The address of the client. Only trusted proxies are believed about it."""
    return address_of(request, of_request(request))


def address_of(connection: HTTPConnection, service: Service) -> str:
    said = connection.headers.getlist("x-forwarded-for")
    peer = peer_of(connection)
    if said and peer not in service.proxies:
        service.warn_of_unknown_proxy(peer)
    return service.proxies.client(peer, said)


def peer_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else ""


def recognised(connection: HTTPConnection, service: Service) -> str | None:
    """The tenant of its key, if the key was valid within the last minutes. Asks no database."""
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    key = Key.read(given) if scheme.lower() == "bearer" else None
    return service.guesses.tenant_of(key) if key else None


def with_scope(scope: Scope, tenant: str | None = None) -> Any:
    """A dependency: the caller, who has that scope, and is that tenant if one is given."""

    async def caller(request: Request, _: Annotated[Any, Depends(bearer)]) -> Caller:
        found = await caller_of(request)
        found.require(scope, tenant)
        return found

    return Depends(caller)


Reader = Annotated[Caller, with_scope(Scope.READ)]
Submitter = Annotated[Caller, with_scope(Scope.SUBMIT)]
Administrator = Annotated[Caller, with_scope(Scope.ADMIN)]
Operator = Annotated[Caller, with_scope(Scope.ADMIN, OPERATOR)]
