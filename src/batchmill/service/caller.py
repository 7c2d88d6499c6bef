"""The caller of a request: its key, its scopes, and the addresses it may call from."""

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
# Values of Sec-Fetch-Site for requests from this service's own pages or directly from the user.
OWN_SITES = ("same-origin", "none")

bearer = HTTPBearer(auto_error=False, description="A key created by `batchmill keys create`.")


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
            raise Forbidden(f"This affects all tenants, so it needs a key of the tenant {tenant}.")


async def caller_of(request: Request) -> Caller:
    """Authenticates the request once and stores the result in its state."""
    if not hasattr(request.state, "batchmill_caller"):
        given = await bearer(request)
        request.state.batchmill_caller = await _admit(request, given and given.credentials)
    return request.state.batchmill_caller


async def _admit(request: Request, given: str | None) -> Caller:
    service = of_request(request)
    address = client_address(request)
    key = Key.read(given) if given else None
    if given and key is None:
        raise NotAuthenticated("This is not a valid key: keys begin with bm_.")

    async def admit() -> Any:
        # Read the tenant here: while this request waited, another one may have looked up the key.
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
        raise NotAuthenticated(
            "This key is not valid: it was revoked, has expired or does not exist."
        )
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
    )


def _require_served_without_key(request: Request, *, is_open: bool) -> None:
    """`is_open` is true until the first key is created."""
    if not is_open:
        raise NotAuthenticated("Send a key: Authorization: Bearer bm_…")
    if of_request(request).settings.require_key:
        raise NotAuthenticated("Send a key. Create one with `batchmill keys create`.")
    require_local(request)


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
    """The tenant of its key, if the key was valid recently. Does not query the database."""
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    key = Key.read(given) if scheme.lower() == "bearer" else None
    return service.guesses.tenant_of(key) if key else None


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
