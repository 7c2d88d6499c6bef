"""Every named query is one that the server understands, also where only one server runs it."""

import re
from typing import Any

import psycopg
import pytest

from batchmill.store.queries import queries

PLACE = re.compile(r"%\((\w+)\)s|%%")


def numbered(query: str) -> str:
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if (name := found[1]) is None:
            return "%"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return PLACE.sub(number, query)


# Of transactions, which cannot be prepared.
ABOUT_TRANSACTIONS = {"begin", "begin_submit", "end_submit", "undo_submit"}


@pytest.mark.parametrize("name", sorted(queries().keys() - ABOUT_TRANSACTIONS))
def test_the_server_understands(name: str, sql: psycopg.Connection[Any]) -> None:
    sql.execute(f"prepare asked as {numbered(queries()[name])}".encode())
