"""Reading schedules."""

from typing import Any

from batchmill.store.database import Database

# Of payloads on a page. A page has one schedule at least.
PAGE_BYTES = 256 * 1024


async def page(
    database: Database, after: tuple[str, str], count: int
) -> tuple[list[dict[str, Any]], bool]:
    """Up to `count` schedules behind that name and tenant, fewer if their payloads are large; and
    whether there are more. Payloads are JSON text."""
    name, tenant = after
    found = await database.rows(
        "page_of_schedules", name=name, tenant=tenant, count=count, bytes=PAGE_BYTES
    )
    return found, bool(found) and found[0]["candidates"] > len(found)
