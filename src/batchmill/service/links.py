"""Links that stand for a key: to one thing of a tenant, for a while."""

from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Depends, Query, Request

from batchmill.domain.key import Scope
from batchmill.mill import Mill
from batchmill.service import schemas
from batchmill.service.caller import Caller, bearer, caller_of
from batchmill.service.service import of_request

LinkSeconds = Annotated[
    float | None,
    Query(gt=0, le=7 * 86_400, allow_inf_nan=False, description="How long it holds; else an hour."),
]


async def signed_link(
    request: Request, caller: Caller, route: str, id: UUID, seconds: float | None
) -> schemas.Link:
    settings = of_request(request).settings
    path = request.url_for(route, id=str(id)).path
    lasts = seconds or settings.link_seconds
    signed = await caller.mill.signer.sign("GET", path, caller.tenant, lasts)
    return schemas.Link(url=f"{settings.public_url or ''}{path}?{urlencode(signed)}", seconds=lasts)


async def mill_of_key_or_link(request: Request, _: Annotated[Any, Depends(bearer)]) -> Mill:
    """What the tenant sees whose key this is, or who signed the link."""
    if "signature" not in request.query_params:
        caller = await caller_of(request)
        caller.require(Scope.READ)
        return caller.mill
    mill = of_request(request).mill
    return mill.as_tenant(await mill.signer.verify("GET", request.url.path, request.query_params))


ByKeyOrLink = Annotated[Mill, Depends(mill_of_key_or_link)]
