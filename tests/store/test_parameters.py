"""Numeric query parameters at the limits of the types that psycopg sends.

psycopg sends a small integer as a smallint. A query that adds to such a parameter, or passes it on,
works with small numbers and fails with larger ones, unless the parameter has a cast.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import pq

from batchmill.store.queries import queries

PARAMETER = re.compile(r"(cast\()?%\((\w+)\)s(::\w+)?")
COMMENT = re.compile(r"--.*")
HEATSYNC = Path(__file__).parents[2] / "apps" / "heatsync" / "sql" / "queries" / "heatsync.sql"
NUMBERS = {"int2", "int4", "int8", "float4", "float8", "numeric"}
ARRAYS = {f"_{name}" for name in NUMBERS}
UP_TO_INT4 = [2**15 - 1, 2**15, 2**15 + 1, 2**31 - 2, 2**31 - 1]
# The query generates a row for each of that many days.
TOO_LONG = {("missing_partitions", "days")}
BEYOND_INT4 = [2**31, 2**31 + 1, 2**53, 2**63 - 1]


def parameters() -> Iterator[tuple[str, str, list[str], set[str]]]:
    """For each query: its name, its text with numbered parameters, the names of the parameters, and
    the names of those that have a cast at every use."""
    for name, query in sorted(queries().items()):
        query = COMMENT.sub("", query)
        names = list(dict.fromkeys(match[2] for match in PARAMETER.finditer(query)))
        if names:
            bare = {m[2] for m in PARAMETER.finditer(query) if not (m[1] or m[3])}
            yield name, numbered(query, names), names, set(names) - bare


def numbered(query: str, names: list[str]) -> str:
    return re.sub(r"%\((\w+)\)s", lambda m: f"${names.index(m[1]) + 1}", query).replace("%%", "%")


def types_of(sql: psycopg.Connection[Any], query: str, names: list[str]) -> dict[str, str]:
    """The types that Postgres infers for the parameters."""
    prepared = sql.pgconn.prepare(b"", query.encode())
    assert prepared.status == pq.ExecStatus.COMMAND_OK, prepared.error_message.decode()
    described = sql.pgconn.describe_prepared(b"")
    oids = [described.param_type(n) for n in range(described.nparams)]
    return {name: type_name(sql, oid) for name, oid in zip(names, oids, strict=True)}


def type_name(sql: psycopg.Connection[Any], oid: int) -> str:
    row = sql.execute("select typname from pg_type where oid = %s", [oid]).fetchone()
    assert row is not None
    return row[0]


def test_every_numeric_parameter_has_a_cast(sql: psycopg.Connection[Any]):
    without = {
        f"{name}: {parameter}"
        for name, query, names, cast in parameters()
        for parameter, kind in types_of(sql, query, names).items()
        if kind in NUMBERS | ARRAYS and parameter not in cast
    }
    assert without == set()


def test_numbers_at_the_limits_of_integer_types_are_accepted(sql: psycopg.Connection[Any]):
    """Runs each query with each number in each numeric parameter, and rolls back."""
    refused = {
        f"{name}: {parameter} = {value}: {error}"
        for name, query, names, _ in parameters()
        for parameter, kind in types_of(sql, query, names).items()
        if kind in NUMBERS and (name, parameter) not in TOO_LONG
        for value in (UP_TO_INT4 if kind == "int4" else UP_TO_INT4 + BEYOND_INT4)
        if (error := overflow(sql, name, {parameter: value}, names))
    }
    assert refused == set()


def overflow(
    sql: psycopg.Connection[Any], name: str, given: dict[str, int], names: list[str]
) -> str | None:
    """The error if a number is out of range. Other errors are expected: all other parameters are
    null."""
    try:
        with sql.transaction(force_rollback=True):
            sql.execute(queries()[name].encode(), dict.fromkeys(names) | given)
    except psycopg.errors.NumericValueOutOfRange as error:
        return str(error)
    except psycopg.Error:
        return None
    return None


@pytest.mark.parametrize("after", [0, 32_000, 32_767, 32_768, 2**31 - 1, 2**31, 10**18 - 1])
@pytest.mark.parametrize("count", [1, 256, 32_767, 40_000])
def test_events_can_be_read_after_any_number(sql: psycopg.Connection[Any], after: int, count: int):
    given = {
        "batch": "00000000-0000-0000-0000-000000000000",
        "after": after,
        "count": count,
    }
    assert sql.execute(queries()["events_after"].encode(), given).fetchall() == []


def test_queries_of_heatsync_cast_their_numbers(sql: psycopg.Connection[Any]):
    """HeatSync's tables do not exist here, so Postgres cannot infer the types."""
    text = COMMENT.sub("", HEATSYNC.read_text())
    bare = {m[2] for m in PARAMETER.finditer(text) if not (m[1] or m[3])}
    assert not bare & {"days", "count", "most", "seconds"}
