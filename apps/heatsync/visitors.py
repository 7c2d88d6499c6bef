"""Visitors by network address. Each one is a tenant, so that visitors take turns."""

from fastapi import Request

from apps.heatsync.answers import Refusal
from apps.heatsync.tables import HEATSYNC
from batchmill import Mill
from batchmill.service import Slowing, client_address, counted_as

# All visitors are tenants of this group, and its quota limits what they store together. Batches of
# earlier versions belong to this tenant.
EVERYONE = "default"
PREFIX = f"{EVERYONE}/"

guesses = Slowing(tries=20, seconds=60)
discoveries = Slowing(tries=10, seconds=60)
mails = Slowing(tries=20, seconds=3_600)


async def tenant_of(mill: Mill, request: Request) -> str:
    """All addresses of one network have the same tenant. Its name does not contain the address."""
    network = counted_as(client_address(request))
    return await HEATSYNC.value(mill, "meet_visitor", network=network, prefix=PREFIX)


def is_visitor(tenant: str) -> bool:
    return tenant == EVERYONE or tenant.startswith(PREFIX)


def enforce_rate(slowing: Slowing, request: Request) -> None:
    """Counts this request, and refuses it if its address sent too many."""
    if (wait := slowing.allow(client_address(request))) is not None:
        raise too_often(wait)


def too_often(wait: float) -> Refusal:
    return Refusal(
        "TOO_MANY_REQUESTS",
        "Too many requests. Wait a while, then try again.",
        status=429,
        wait=wait,
    )
