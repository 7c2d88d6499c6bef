"""Visitors: who hands in sheets, by network address. Each is a tenant, so that they take turns."""

from fastapi import Request

from apps.heatsync import tables
from apps.heatsync.answers import Refusal
from batchmill import Mill
from batchmill.service import Slowing, client_address, counted_as

# All visitors are tenants of this group, whose quota bounds what they store together. It is also
# the tenant of batches of former versions.
EVERYONE = "default"
PREFIX = f"{EVERYONE}/"

guesses = Slowing(tries=20, seconds=60)
discoveries = Slowing(tries=10, seconds=60)
mails = Slowing(tries=20, seconds=3_600)


async def tenant_of(mill: Mill, request: Request) -> str:
    """The same for all addresses of one network. The name does not tell the address."""
    network = counted_as(client_address(request))
    async with tables.transaction(mill) as conn:
        found = await tables.one(conn, "meet_visitor", network=network, prefix=PREFIX)
    assert found is not None
    return found["tenant"]


def is_visitor(tenant: str) -> bool:
    return tenant == EVERYONE or tenant.startswith(PREFIX)


def require_patience(slowing: Slowing, request: Request) -> None:
    """Refuses an address that asked too often; this request counts."""
    if (wait := slowing.allow(client_address(request))) is not None:
        raise too_often(wait)


def too_often(wait: float) -> Refusal:
    return Refusal("TOO_MANY_REQUESTS", "Wait a while, then try again.", status=429, wait=wait)
