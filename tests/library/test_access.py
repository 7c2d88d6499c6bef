"""Privileges on functions: other roles of the server can neither read nor change anything."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql as q
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from batchmill import Mill
from batchmill.store.errors import OWN
from tests.library.tools import echo_on, later, one, rows

FUNCTIONS = """
    select p.oid::regprocedure::text, p.proname, p.prosecdef,
        p.prosqlbody is not null or exists (
            select from unnest(p.proconfig) s
            where s = 'search_path=batchmill, pg_catalog, pg_temp') as is_bound,
        has_function_privilege('public', p.oid, 'execute') as is_public,
        has_function_privilege('batchmill_tenant', p.oid, 'execute') as is_tenants,
        p.prorettype = 'trigger'::regtype as is_trigger,
        array(select t::regtype::text from unnest(p.proargtypes) t) as types
    from pg_proc p where p.pronamespace = 'batchmill'::regnamespace order by 1"""

# What requests of tenants call. Functions that write run as the owner and check whose row it is.
READING = {"clock", "duplicates_of", "is_builtin", "named_artifacts", "page_end", "raw_size"}
ACTING = {
    *(
        "submit",
        "submit_one",
        "hold_request",
        "enqueue",
        "cancel_batch",
        "begin_cancel",
        "cancel_step",
        "cancel_job",
        "retry_batch",
        "retry_job",
    ),
    *("delete_batch", "watch_batch", "watch_job", "notify_batch"),
    *("save_webhook", "rotate_webhook", "enable_webhook", "delete_webhook"),
    *("begin_input", "grow_artifact", "end_artifact", "give_up_artifact", "delete_artifact"),
    *("forget_artifacts", "count_download"),
    *("save_schedule", "pause_schedule", "delete_schedule"),
    *("seen_tenant", "quota_use"),
}
# These run as the owner too: one is for processes of the engine, one compares the session with
# the owner, and one is a trigger on tables of applications.
FOR_THE_ENGINE = {"listening_key", "acting_tenant", "refuse_erased_row"}
SECRET = "the-secret-of-ada"


@dataclass(frozen=True)
class Function:
    name: str
    short: str
    is_definer: bool
    is_bound: bool
    is_public: bool
    is_tenants: bool
    is_trigger: bool
    types: list[str]


def functions(sql: psycopg.Connection[Any]) -> list[Function]:
    return [Function(*row) for row in rows(sql, FUNCTIONS)]


def test_public_may_call_no_function(sql: psycopg.Connection[Any]) -> None:
    everything = functions(sql)
    assert len(everything) > 100
    assert [each.name for each in everything if each.is_public] == []


def test_every_function_has_its_own_search_path(
    sql: psycopg.Connection[Any],
) -> None:
    assert [each.name for each in functions(sql) if not each.is_bound] == []


def test_tenants_may_call_only_the_functions_that_requests_need(
    sql: psycopg.Connection[Any],
) -> None:
    assert {each.short for each in functions(sql) if each.is_tenants} == READING | ACTING


def test_only_listed_functions_run_as_their_owner(sql: psycopg.Connection[Any]) -> None:
    definers = {each.short for each in functions(sql) if each.is_definer}
    assert definers == ACTING | FOR_THE_ENGINE


def test_tenants_may_only_read_tables(sql: psycopg.Connection[Any]) -> None:
    granted = """select distinct a.privilege_type from pg_class c, aclexplode(c.relacl) a
        where c.relnamespace = 'batchmill'::regnamespace
          and a.grantee = 'batchmill_tenant'::regrole"""
    assert rows(sql, granted) == [("SELECT",)]


def test_guarding_the_tables_again_changes_nothing(sql: psycopg.Connection[Any]) -> None:
    acl = """select md5(string_agg(concat(oid::regprocedure, proacl, proconfig), ',' order by oid))
        from pg_proc where pronamespace = 'batchmill'::regnamespace"""
    before = one(sql, acl)
    sql.execute("select batchmill.guard_tables()")
    assert one(sql, acl) == before


@dataclass(frozen=True)
class Victim:
    """Ids of rows of a tenant, which an attacker knows."""

    batch: str
    finished: str
    job: int
    webhook: str
    artifact: str

    def argument(self, type: str, place: int) -> str:
        """A value of the type that would do harm if a function accepted it."""
        values = {
            "uuid": f"'{self.batch}'",
            "uuid[]": f"array['{self.batch}', '{self.artifact}']::uuid[]",
            "bigint": f"{self.job}",
            "bigint[]": f"array[{self.job}]::bigint[]",
            "integer": "1",
            "integer[]": "'{1}'",
            "text": "'ada'" if place == 0 else "'echo'",
            "text[]": "'{ada}'",
            "json": "'[{\"payload\": 1}]'",
            "jsonb": '\'{"tenant": "ada"}\'',
            "boolean": "true",
            "double precision": "60",
            "timestamp with time zone": "now()",
            "timestamp with time zone[]": "array[now()]",
            "date": "'2100-01-01'",
            "xid8": "'0'",
            "pg_snapshot": "'10:10:'",
            "bytea": "'x'",
            "name": "'batchmill_tenant'",
            "regclass": "'batchmill.jobs'",
        }
        return f"{values.get(type, 'null')}::{'batchmill.' * (type not in values)}{bare(type)}"


def bare(type: str) -> str:
    return type.removeprefix("batchmill.")


@pytest.fixture
async def victim(owned: Mill, owner: str) -> Victim:
    echo = echo_on(owned)
    ada = owned.as_tenant("ada")
    batch = await ada.submit(echo, [SECRET], labels={"secret": SECRET})
    finished = await ada.submit(echo, [SECRET])
    await finished.cancel()
    job = await ada.enqueue(echo, SECRET, delay=3_600)
    with psycopg.connect(owner, autocommit=True) as conn:
        conn.execute(
            "insert into batchmill.tasks (name, retry, registered_at) "
            "values ('batchmill.webhook', '{}', now())"
        )
        (webhook,) = one(conn, "select id from batchmill.save_webhook('https://1.1.1.1/', 'ada')")
        (artifact,) = one(
            conn,
            "select id from batchmill.begin_input('ada', 'a', 'text/plain', gen_random_uuid())",
        )
    await owned.schedules.save("nightly", "0 3 * * *", echo, SECRET, tenant="ada")
    return Victim(str(batch.id), str(finished.id), job.id, str(webhook), str(artifact))


@pytest.fixture
def logins(empty_dsn: str, owned: Mill) -> Iterator["Logins"]:
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        made = Logins(conn, empty_dsn)
        yield made
        made.drop()


class Logins:
    """Roles that can log in and do not own the schema."""

    def __init__(self, conn: psycopg.Connection[Any], dsn: str):
        self._conn = conn
        self._dsn = dsn
        self._names: list[str] = []

    def add(self, kind: str, *statements: str) -> str:
        """Creates a role and returns its DSN. `{role}` in statements stands for its name."""
        name = f"{kind}_{conninfo_to_dict(self._dsn)['dbname']}"
        self._names.append(name)
        for statement in ("create role {role} login password 'secret'", *statements):
            self._conn.execute(q.SQL(statement).format(role=q.Identifier(name)))  # pyright: ignore
        return make_conninfo(self._dsn, user=name, password="secret")

    def drop(self) -> None:
        for name in self._names:
            self._conn.execute(q.SQL("drop owned by {}").format(q.Identifier(name)))
            self._conn.execute(q.SQL("drop role {}").format(q.Identifier(name)))


AS_STRANGER = ("grant usage on schema batchmill to {role}",)
AS_MEMBER = (*AS_STRANGER, "grant batchmill_tenant to {role}")

ATTACKERS = {
    "stranger": (AS_STRANGER, ()),
    "member": (AS_MEMBER, ("set batchmill.tenant = 'ada'",)),
    "member in the role": (
        AS_MEMBER,
        ("set role batchmill_tenant", "set batchmill.tenant = 'ada'"),
    ),
}


@pytest.fixture(params=ATTACKERS)
def attacker(request: pytest.FixtureRequest, logins: Logins) -> Iterator[psycopg.Connection[Any]]:
    grants, first = ATTACKERS[request.param]
    with psycopg.connect(logins.add("attacker", *grants), autocommit=True) as conn:
        for statement in ("set batchmill.clock_offset = '-100 days'", *first):
            conn.execute(statement.encode())
        yield conn


@contextmanager
def unchanged(owner: str) -> Iterator[None]:
    """Asserts that the block changes nothing in the schema."""

    def state(conn: psycopg.Connection[Any]) -> dict[str, str]:
        tables = rows(
            conn,
            """select relname from pg_class where relnamespace = 'batchmill'::regnamespace
            and relkind in ('r', 'p') and not relispartition""",
        )
        return {
            name: one(
                conn,
                f"select md5(string_agg(t::text, ',' order by t::text)) from batchmill.{name} t",
            )[0]
            for (name,) in tables
        }

    with psycopg.connect(owner, autocommit=True) as conn:
        before = state(conn)
        yield
        assert state(conn) == before


def assert_refused_or_empty(
    conn: psycopg.Connection[Any], call: str, args: dict[str, Any] | None = None
) -> None:
    """Asserts that the call is refused, or returns no data."""
    try:
        found = conn.execute(f"select * from batchmill.{call}".encode(), args).fetchall()
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.RaiseException):
        return
    except psycopg.Error as error:
        assert error.sqlstate in OWN, call
        return
    assert SECRET not in str(found) and "whsec" not in str(found), call
    assert {value for row in found for value in row} <= {None, 0, ""}, call


def test_no_function_returns_or_changes_data_for_other_roles(
    attacker: psycopg.Connection[Any], victim: Victim, owner: str
) -> None:
    with psycopg.connect(owner, autocommit=True) as conn:
        everything = functions(conn)
    with unchanged(owner):
        for each in everything:
            if each.short in READING or each.is_trigger:
                continue
            arguments = ", ".join(
                victim.argument(type, place) for place, type in enumerate(each.types)
            )
            assert_refused_or_empty(attacker, f"{each.short}({arguments})")


CALLS = [
    "rotate_webhook('{webhook}')",
    "save_webhook('https://1.1.1.1/', 'ada')",
    "save_webhook('https://1.1.1.1/new', 'ada')",
    "enable_webhook('{webhook}')",
    "delete_webhook('{webhook}')",
    "cancel_batch('{batch}')",
    "cancel_job({job})",
    "retry_batch('{finished}')",
    "delete_batch('{finished}')",
    "enqueue('echo', '1', '{{\"tenant\": \"ada\"}}')",
    "submit('echo', '[{{}}]', '{{\"tenant\": \"ada\"}}')",
    "give_up_artifact('{artifact}')",
    "end_artifact('{artifact}', 1, repeat('0', 64))",
    "notify_batch('{batch}', '{{https://1.1.1.1/}}')",
    "watch_batch('{batch}')",
    "save_schedule('ada', 'new', 'echo', '1', '', 0, '* * * * *', 'UTC', 'once', now(), 60)",
    "pause_schedule('ada', 'nightly', true)",
    "delete_schedule('ada', 'nightly')",
    "listening_key()",
]


def test_other_roles_cannot_change_the_work_of_a_tenant(
    attacker: psycopg.Connection[Any], victim: Victim, owner: str
) -> None:
    for call in CALLS:
        with unchanged(owner):
            assert_refused_or_empty(attacker, call.format(**vars(victim)))


def test_other_roles_cannot_read_rows_of_a_tenant(
    attacker: psycopg.Connection[Any], victim: Victim, owner: str
) -> None:
    with psycopg.connect(owner, autocommit=True) as conn:
        tables = rows(
            conn,
            "select relname from pg_class where relnamespace = 'batchmill'::regnamespace and relkind in ('r', 'p', 'v')",
        )
    for (table,) in tables:
        try:
            found = rows(attacker, f"select * from batchmill.{table}")
        except psycopg.errors.InsufficientPrivilege:
            continue
        assert found == [] or table == "tasks"


def test_a_tenant_cannot_call_internal_functions(owned: Mill, victim: Victim, owner: str) -> None:
    with psycopg.connect(owner, autocommit=True) as conn, unchanged(owner):
        internal = [each for each in functions(conn) if not each.is_tenants and not each.is_trigger]
        conn.execute("set role batchmill_tenant")
        conn.execute("set batchmill.tenant = 'ada'")
        for each in internal:
            arguments = ", ".join(victim.argument(type, 0) for type in each.types)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(f"select batchmill.{each.short}({arguments})".encode())


def test_a_tenant_cannot_move_the_clock(owner: str, owned: Mill) -> None:
    ahead = "select batchmill.clock() > now() + interval '1 hour'"
    with psycopg.connect(later(owner_url(owner), "2h"), autocommit=True) as conn:
        assert one(conn, ahead) == (True,)
        conn.execute("set role batchmill_tenant")
        conn.execute("set batchmill.tenant = 'ada'")
        assert one(conn, ahead) == (False,)
        conn.execute("set batchmill.clock_offset = '3 days'")
        assert one(conn, ahead) == (False,)
        conn.execute("select batchmill.begin_input('ada', 'a', 'text/plain', gen_random_uuid())")
        assert one(
            conn, "select max(created_at) < now() + interval '1 hour' from batchmill.artifacts"
        ) == (True,)


def owner_url(conninfo: str) -> str:
    parts = conninfo_to_dict(conninfo)
    return "postgresql://{user}:{password}@{host}:{port}/{dbname}".format(**parts)


async def test_notifications_name_no_batch_and_no_job(
    owned: Mill, owner: str, logins: Logins
) -> None:
    echo = echo_on(owned)
    with psycopg.connect(logins.add("listening"), autocommit=True) as stranger:
        stranger.execute("listen batchmill")
        batch = await owned.as_tenant("ada").submit(echo, [1, 2])
        job = await owned.as_tenant("ada").enqueue(echo, 3)
        await owned.database.rows("watch_batch", batch=batch.id)
        await owned.database.rows("watch_job", job=job.id)
        async with owned.running():
            await batch.results()
            await job.result()
        payloads = {notice.payload for notice in stranger.notifies(timeout=0)}
    digests = payloads - {"work", "upkeep"}
    assert all(len(topic) == 32 and int(topic, 16) >= 0 for topic in digests)
    with psycopg.connect(owner) as conn:
        (key,) = one(conn, "select batchmill.listening_key()")
    watched = (f"batch:{batch.id}", f"done:{batch.id}", f"job:{job.id}")
    assert digests == {
        hashlib.sha256(bytes(key) + topic.encode()).hexdigest()[:32] for topic in watched
    }


@pytest.mark.parametrize("trust", ["member of the owner", "bypassing row-level security"])
async def test_a_program_with_its_own_role_submits_for_every_tenant(
    trust: str, owned: Mill, owner: str, empty_dsn: str, logins: Logins
) -> None:
    """With the grants of docs/howto/operations.md."""
    await owned.register_tasks({"echo": echo_on(owned)})
    if trust == "member of the owner":
        login = logins.add("shop", f"grant {conninfo_to_dict(owner)['user']} to {{role}}")
    else:
        login = logins.add(
            "shop",
            "alter role {role} bypassrls",
            "grant usage on schema batchmill to {role}",
            "grant select, insert, update, delete on all tables in schema batchmill to {role}",
            "grant usage on all sequences in schema batchmill to {role}",
        )
        with psycopg.connect(owner, autocommit=True) as conn:
            conn.execute("select batchmill.guard_tables()")
    async with Mill(login) as shop:
        batch = await shop.submit(echo_on(shop), [1, 2], tenant="ada")
        assert (await batch.get()).tenant == "ada"
        await batch.cancel()
        await batch.delete()
    with psycopg.connect(login, autocommit=True) as conn:
        options = json.dumps({"tenant": "bob"})
        (answer,) = one(conn, "select batchmill.enqueue('echo', '1', %s::jsonb)", options)
        assert one(conn, "select tenant from batchmill.jobs where id = %s", answer["job_id"]) == (
            "bob",
        )
