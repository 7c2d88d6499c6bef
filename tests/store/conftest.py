"""Database sessions that call the engine's SQL functions."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from tests.invariants import violations
from tests.store.engine import Engine


@pytest.fixture
def sessions(dsn: str) -> Iterator[Callable[[], Engine]]:
    """Opens concurrent sessions. After the test, every invariant must hold."""
    opened: list[Engine] = []
    with ExitStack() as stack:

        def connect() -> Engine:
            opened.append(Engine(stack.enter_context(psycopg.connect(dsn, autocommit=True))))
            return opened[-1]

        yield connect
        latest = max((engine.offset for engine in opened), default=0)
        checker = connect()
        checker.set_clock(latest)
        assert violations(checker.conn, lowered=True) == []


@pytest.fixture
def engine(sessions: Callable[[], Engine]) -> Engine:
    return sessions()
