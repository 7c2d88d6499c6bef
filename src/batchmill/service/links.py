"""Signed links: each replaces a key for one resource of a tenant, for a limited time."""

from typing import Annotated, Any, NamedTuple
from urllib.parse import quote, urlencode
from uuid import UUID

from fastapi import Depends, Query, Request

from batchmill.client import Client
from batchmill.domain.key import Scope
from batchmill.errors import InvalidLink
from batchmill.service import schemas
from batchmill.service.caller import Caller, bearer, caller_of
from batchmill.service.service import of_request
from batchmill.service.sessions import end_of

# A link is signed for GET. HEAD returns less, and everything else may change something.
METHODS = ("GET", "HEAD")
# Characters that a path may contain unescaped, by RFC 3986.
UNQUOTED = "/:@!$&'()*+,;=~"

LinkSeconds = Annotated[
    float | None,
    Query(
        gt=0,
        le=7 * 86_400,
        allow_inf_nan=False,
        description="Seconds until it expires. Default: an hour.",
    ),
]


async def signed_url(
    request: Request, caller: Caller, route: str, seconds: float | None = None, **params: Any
) -> str:
    """A link to a GET route that works without a key for `seconds`, with the caller's read access.

    `route` is the name of the route, and `params` are those of its path. The route takes `viewer:
    ByKeyOrLink`. The signature covers the path, and no query parameters of your own.
    """
    settings = of_request(request).settings
    path = request.url_for(route, **{name: str(value) for name, value in params.items()}).path
    signed = await caller.client.signer.sign(
        "GET", path, caller.tenant, seconds or settings.link_seconds
    )
    return f"{settings.public_url or ''}{path}?{urlencode(signed)}"


async def signed_link(
    request: Request, caller: Caller, route: str, id: UUID, seconds: float | None
) -> schemas.Link:
    lasts = seconds or of_request(request).settings.link_seconds
    return schemas.Link(url=await signed_url(request, caller, route, lasts, id=id), seconds=lasts)


class Viewer(NamedTuple):
    """Has the read access of a tenant, through the tenant's `key` or a signed link. The access ends
    at `ends_at`, by the clock of the event loop, if it is through a session or a link."""

    client: Client
    key: str | None
    ends_at: float | None = None


async def viewer_by_key_or_link(request: Request, _: Annotated[Any, Depends(bearer)]) -> Viewer:
    if "signature" not in request.query_params:
        caller = await caller_of(request)
        caller.require(Scope.READ)
        return Viewer(caller.client, caller.key, caller.ends_at)
    if request.method not in METHODS:
        raise InvalidLink("A signed link is for GET and HEAD only. Send a key with this request.")
    require_plain_path(request)
    service = of_request(request)
    mill = service.mill
    link = await mill.signer.verified("GET", request.url.path, request.query_params)
    return Viewer(mill.as_tenant(link.text, timeouts=service.timeouts), None, end_of(link))


def require_plain_path(request: Request) -> None:
    """Rejects other encodings of the path, for example %2f, because the signature covers one."""
    raw = request.scope.get("raw_path")
    if raw is not None and raw.partition(b"?")[0].decode("latin-1") != quote(
        request.scope["path"], safe=UNQUOTED
    ):
        raise InvalidLink(
            "The path of the link was changed. Use the link exactly as it was issued."
        )


ByKeyOrLink = Annotated[Viewer, Depends(viewer_by_key_or_link)]
