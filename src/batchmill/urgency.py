"""Marks work that must not queue, because other work waits for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_urgent: ContextVar[bool] = ContextVar("batchmill.urgent", default=False)


@contextmanager
def urgent() -> Iterator[None]:
    """For a block that holds something scarce, for example a connection or a shared lock. If the
    block had to queue, callers ahead of it in the queue could still wait for what it holds."""
    before = _urgent.get()
    _urgent.set(True)
    try:
        yield
    finally:
        # Not `reset`: the block may end in a different context from the one it began in.
        _urgent.set(before)


def is_urgent() -> bool:
    return _urgent.get()
