"""A schema whose owner is not a superuser, as on managed servers."""

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from psycopg import sql as q
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from batchmill import Mill


@pytest.fixture
def owner(empty_dsn: str, template: str) -> Iterator[str]:
    """A DSN for an owner of the database that is not a superuser. The tenant role, which all
    databases of a server share, was created by another user."""
    name = conninfo_to_dict(empty_dsn)["dbname"]
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        role = q.Identifier(f"owner_{name}")
        conn.execute(q.SQL("create role {} login password 'secret'").format(role))
        conn.execute(q.SQL("grant batchmill_tenant to {}").format(role))
        conn.execute(q.SQL("alter database {} owner to {}").format(q.Identifier(str(name)), role))
        yield make_conninfo(empty_dsn, user=f"owner_{name}", password="secret")
        conn.execute(q.SQL("drop owned by {} cascade").format(role))
        conn.execute(q.SQL("reassign owned by {} to current_user").format(role))
        conn.execute(q.SQL("drop role {}").format(role))


@pytest.fixture
async def owned(owner: str) -> AsyncIterator[Mill]:
    async with Mill(owner, migrate=True) as mill:
        yield mill
