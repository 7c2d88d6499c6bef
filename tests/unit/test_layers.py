"""Checks a rule that import-linter cannot see, because queries are named by strings."""

import ast
from collections.abc import Iterator
from pathlib import Path

import batchmill
from batchmill.store.queries import queries

SOURCE = Path(batchmill.__file__).parent
METHODS = {"rows", "row", "value", "page", "value_unless_locked"}


def named_queries(tree: ast.AST) -> Iterator[str]:
    """Yields the names of queries that are the first argument of a call."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr=method), args=[ast.Constant(value=str(name)), *_]
            ) if method in METHODS and name in queries():
                yield name


def test_only_the_store_names_queries() -> None:
    outside = [path for path in SOURCE.rglob("*.py") if SOURCE / "store" not in path.parents]
    violations = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in outside
        for name in named_queries(ast.parse(path.read_text()))
    }
    assert violations == set()


def test_calls_that_name_a_query_are_recognised() -> None:
    tree = ast.parse("await database.value('finish', ids=ids)\nwords.value('finish line')")
    assert list(named_queries(tree)) == ["finish"]
