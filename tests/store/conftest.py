"""Sessions that drive the engine."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from tests.invariants import violations
from tests.store.engine import Engine


@pytest.fixture
def sessions(dsn: str) -> Iterator[Callable[[], Engine]]:
    """Makes sessions beside each other; afterwards every invariant has to hold."""
    made: list[Engine] = []
    with ExitStack() as stack:

        def connect() -> Engine:
            made.append(Engine(stack.enter_context(psycopg.connect(dsn, autocommit=True))))
            return made[-1]

        yield connect
        latest = max((engine.offset for engine in made), default=0)
        witness = connect()
        witness.set_clock(latest)
        assert violations(witness.conn, lowered=True) == []


@pytest.fixture
def engine(sessions: Callable[[], Engine]) -> Engine:
    return sessions()
