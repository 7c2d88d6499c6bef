"""The quota of a tenant limits what it and the tenants below it ("club/ann") store together."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.invariants import violations
from tests.store.engine import Engine
from tests.store.rivals import Rival

Sessions = Callable[[], Engine]


def begin(engine: Engine, tenant: str) -> UUID:
    return engine.rows(
        "select id from batchmill.begin_input(%s, 'a', 'a/b', gen_random_uuid())", tenant
    )[0][0]


def grow(engine: Engine, file: UUID, size: int) -> tuple[Any, ...]:
    """Returns the bytes that are granted, used and allowed."""
    grown = "select * from batchmill.grow_artifact(%s, %s::bigint, %s::bigint, null)"
    return engine.rows(grown, file, size, size)[0]


def forget(engine: Engine, *files: UUID) -> None:
    for file in files:
        engine.call("give_up_artifact", file)
    engine.call("forget_artifacts", list(files))


def set_quota(engine: Engine, tenant: str, size: int) -> None:
    engine.conn.execute(
        "insert into batchmill.quotas (tenant, storage_bytes) values (%s, %s)", [tenant, size]
    )


@pytest.fixture
def engine(sessions: Sessions) -> Engine:
    return sessions()


def test_files_of_all_tenants_of_a_group_count_against_its_quota(engine: Engine) -> None:
    set_quota(engine, "club", 1_000)
    club, ann, bob = (begin(engine, tenant) for tenant in ("club", "club/ann", "club/bob"))
    assert grow(engine, club, 100) == (100, 100, 1_000)
    assert grow(engine, ann, 500) == (500, 600, 1_000)
    assert grow(engine, bob, 401) == (0, 600, 1_000)
    assert grow(engine, club, 501) == (100, 600, 1_000)
    # A name with the same prefix but no slash is another group.
    assert grow(engine, begin(engine, "clubhouse"), 5_000)[0] == 5_000
    assert grow(engine, bob, 400) == (400, 1_000, 1_000)
    engine.rows("select from batchmill.end_artifact(%s, 50::bigint, repeat('0', 64))", bob)
    assert grow(engine, club, 450) == (450, 1_000, 1_000)
    forget(engine, ann, bob)
    assert grow(engine, club, 1_000) == (1_000, 1_000, 1_000)
    assert violations(engine.conn) == []


def test_the_default_quota_limits_each_tenant_but_no_group(engine: Engine) -> None:
    set_quota(engine, "*", 1_000)
    ann, bob = begin(engine, "club/ann"), begin(engine, "club/bob")
    assert grow(engine, ann, 900)[0] == 900
    assert grow(engine, bob, 900)[0] == 900
    assert grow(engine, bob, 1_001) == (900, 900, 1_000)


def test_concurrent_uploads_of_a_group_cannot_exceed_its_quota(sessions: Sessions) -> None:
    engine, ann, bob = sessions(), sessions(), sessions()
    set_quota(engine, "club", 1_000)
    files = [begin(engine, "club/ann"), begin(engine, "club/bob")]
    with ann.conn.transaction():
        assert grow(ann, files[0], 600)[0] == 600
        late = Rival(lambda: grow(bob, files[1], 600)).wait_until_blocked(bob)
    assert late.result() == (0, 600, 1_000)
    assert violations(engine.conn) == []


def test_forgetting_files_does_not_deadlock_with_storing_a_file(
    sessions: Sessions,
) -> None:
    """Both lock the rows of tenants first and the row of the group last."""
    engine, holder, one, other = (sessions() for _ in range(4))
    old = [begin(engine, tenant) for tenant in ("club/ann", "club/bob")]
    for file in old:
        grow(engine, file, 100)
        engine.call("give_up_artifact", file)
    new = begin(engine, "club/bob")
    with holder.conn.transaction():
        holder.rows("select from batchmill.storage_groups for update")
        forgetting = Rival(lambda: one.call("forget_artifacts", old)).wait_until_blocked(one)
        growing = Rival(lambda: grow(other, new, 10)).wait_until_blocked(other)
    assert growing.result()[0] == 10
    forgetting.result()
    assert engine.rows("select stored_bytes from batchmill.storage_groups") == [(10,)]
    assert violations(engine.conn) == []


def test_a_submit_does_not_block_uploads_of_the_group(sessions: Sessions) -> None:
    """A submit locks only the tenant's own row, and may take long."""
    engine, submitter = sessions(), sessions()
    grow(engine, begin(engine, "club"), 1)
    with submitter.conn.transaction():
        submitter.rows("select from batchmill.usage where tenant = 'club' for update")
        assert grow(engine, begin(engine, "club/ann"), 10)[0] == 10
