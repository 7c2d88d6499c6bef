"""Marks work that others wait for, so that nothing makes it wait for its turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_urgent: ContextVar[bool] = ContextVar("batchmill.urgent", default=False)


@contextmanager
def urgent() -> Iterator[None]:
    """For a block that holds what is scarce, such as a connection or a lock that all share. Whoever
    comes next waits for it, also a caller that would go before this one."""
    was_urgent = _urgent.set(True)
    try:
        yield
    finally:
        _urgent.reset(was_urgent)


def is_urgent() -> bool:
    return _urgent.get()
