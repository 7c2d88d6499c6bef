"""Who calls: whose key it is, what that may do, and where it may be used."""

import logging
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from batchmill.domain.key import Key, Scope
from batchmill.domain.quota import Quota
from batchmill.errors import Forbidden, NotAuthenticated, QuotaExceeded
from batchmill.mill import Mill
from batchmill.service.addresses import is_loopback, read_address
from batchmill.service.service import of_request

log = logging.getLogger("batchmill.service")

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
# Whose admin keys are those of the people who run the system.
OPERATOR = "default"
# What proxies say of whom they speak for.
FORWARDED = ("forwarded", "via", "x-forwarded-", "x-real-ip")

bearer = HTTPBearer(auto_error=False, description="A key made by `batchmill keys create`.")


@dataclass(frozen=True, slots=True)
class Caller:
    """`mill` is what its tenant sees of the mill; routes have no other."""

    mill: Mill
    tenant: str
    scopes: frozenset[Scope]
    quota: Quota | None
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
    key = Key.read(given) if given else None
    if given and key is None:
        raise NotAuthenticated("That is no key: keys begin with bm_.")
    found = await service.mill.database.value(
        "admit", key=key and key.id, digest=key and key.digest
    )
    if found is None and key is None:
        raise NotAuthenticated("Send a key: Authorization: Bearer bm_…")
    if found is None:
        log.warning("Someone at %s has a key that is not valid.", client_address(request))
        raise NotAuthenticated("This key is not valid: it was revoked, has expired, or never was.")
    if key is None and service.settings.require_key:
        raise NotAuthenticated("Send a key: make one with `batchmill keys create`.")
    if key is None:
        require_local(request)
    if found["retry_after"] is not None:
        raise QuotaExceeded(
            "This tenant has made as many requests as it may in a minute.",
            limit=found["quota"]["requests_per_minute"],
            retry_after=found["retry_after"],
        )
    return Caller(
        mill=service.mill.as_tenant(found["tenant"], timeouts=service.timeouts),
        tenant=found["tenant"],
        scopes=frozenset(Scope(scope) for scope in found["scopes"]),
        quota=_quota(found["quota"]),
        key=found["key"],
    )


def _quota(row: dict[str, Any] | None) -> Quota | None:
    return Quota(**row) if row and row["tenant"] else None


def require_local(request: Request) -> None:
    """Without any key, only this machine is served; not what a proxy on it passes on from
    elsewhere, and no page of another site that a browser here has open."""
    host = request.headers.get("host", "")
    is_here = is_loopback(peer_of(request)) and name_in(f"//{host}") in LOCAL_NAMES
    if not is_here or any(name.startswith(FORWARDED) for name in request.headers):
        raise Forbidden(
            "Without a key only this machine is served: make one with `batchmill keys create`."
        )
    origin = request.headers.get("origin")
    if origin and origin.partition("://")[2] != host:
        raise Forbidden("Without a key, pages of other sites are not served.")


def name_in(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def client_address(request: Request) -> str:
    """The client's, by the word of trusted proxies alone: the nearest address that is none of
    theirs."""
    proxies = of_request(request).proxies
    said = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
    address = peer_of(request)
    while (here := read_address(address)) and any(here in network for network in proxies):
        if not said or not (there := read_address(said.pop().strip())):
            break
        address = str(there)
    return address


def peer_of(request: Request) -> str:
    return request.client.host if request.client else ""


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
