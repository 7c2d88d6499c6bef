"""Usage: totals of the amounts that handlers recorded."""

from datetime import date
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from batchmill.domain.key import Scope
from batchmill.domain.usage import UsageGroup
from batchmill.service import schemas
from batchmill.service.caller import OPERATOR, Reader
from batchmill.service.requests import GuardedRoute
from batchmill.service.service import AnyService

router = APIRouter(prefix="/usage", tags=["usage"], route_class=GuardedRoute)

EVERY_TENANT = "*"


@router.get("")
async def get_usage(
    service: AnyService,
    caller: Reader,
    by: Annotated[
        tuple[UsageGroup, ...], Query(max_length=3, description="What to group by.")
    ] = (),
    since: Annotated[date | None, Query(description="The first day, in UTC.")] = None,
    until: Annotated[date | None, Query(description="The last day, in UTC.")] = None,
    task: schemas.Name | None = None,
    batch: UUID | None = None,
    tenant: Annotated[
        schemas.Name | None,
        Query(description="For operators: another tenant, or * for all tenants."),
    ] = None,
) -> schemas.UsageTotals:
    """Totals of the caller's tenant: of the last 30 days by default, or of one batch."""
    client = caller.client
    if tenant not in (None, caller.tenant):
        caller.require(Scope.ADMIN, OPERATOR)
        client = service.mill
    found = await client.usage(
        by=by,
        since=since,
        until=until,
        task=task,
        batch=batch,
        tenant=None if tenant == EVERY_TENANT else tenant,
    )
    return schemas.UsageTotals(totals=[schemas.UsageTotal.model_validate(each) for each in found])
