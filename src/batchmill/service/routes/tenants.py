"""Counts the rows of tenants, and erases tenants."""

from typing import Annotated

from fastapi import APIRouter, Path

from batchmill.service import operator_schemas
from batchmill.service.caller import Operator
from batchmill.service.requests import GuardedRoute
from batchmill.service.service import AnyService

router = APIRouter(prefix="/tenants", tags=["tenants"], route_class=GuardedRoute)

# Names contain slashes: club/ann.
TenantName = Annotated[str, Path(min_length=1, max_length=500)]


@router.get("/{name:path}")
async def get_tenant(
    service: AnyService, caller: Operator, name: TenantName
) -> operator_schemas.Tenant:
    """Counts the rows of a tenant in every table."""
    tenants = service.mill.tenants
    since = {each.tenant: each.requested_at for each in await tenants.erasures()}
    return operator_schemas.Tenant(
        tenant=name, erasing_since=since.get(name), rows=await tenants.remains(name)
    )


@router.delete("/{name:path}", status_code=202)
async def erase_tenant(
    service: AnyService, caller: Operator, name: TenantName
) -> operator_schemas.TenantErasure:
    """Begins to delete all data of a tenant. The upkeep of a worker does the work. The erasure has
    ended when `erasing_since` of the tenant is null again."""
    return operator_schemas.TenantErasure.model_validate(
        await service.mill.tenants.begin_erasure(name)
    )
