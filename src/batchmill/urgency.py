"""Marks work that must not wait for its turn, because others wait for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_urgent: ContextVar[bool] = ContextVar("batchmill.urgent", default=False)


@contextmanager
def urgent() -> Iterator[None]:
    """For a block that holds something scarce, such as a connection or a shared lock. If the block
    waited for its turn, callers that go before it would wait for it all the same."""
    before = _urgent.get()
    _urgent.set(True)
    try:
        yield
    finally:
        # Not `reset`: the block may end in another context than it began in.
        _urgent.set(before)


def is_urgent() -> bool:
    return _urgent.get()
