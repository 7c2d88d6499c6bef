"""Every named query is valid on every supported server."""

import re
from typing import Any

import psycopg
import pytest

from batchmill.store.queries import queries

PARAMETER = re.compile(r"%\((\w+)\)s|%%")


def numbered(query: str) -> str:
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if (name := match[1]) is None:
            return "%"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return PARAMETER.sub(number, query)


# Transaction commands cannot be prepared.
TRANSACTION_COMMANDS = {"begin", "begin_submit", "end_submit", "one_snapshot", "undo_submit"}


@pytest.mark.parametrize("name", sorted(queries().keys() - TRANSACTION_COMMANDS))
def test_the_server_can_prepare_the_query(name: str, sql: psycopg.Connection[Any]) -> None:
    sql.execute(f"prepare asked as {numbered(queries()[name])}".encode())
