"""Runs calls of concurrent sessions, and waits until one is blocked by a lock of another."""

import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar

import psycopg

from tests.store.engine import Engine

R = TypeVar("R")
PATIENCE = 20.0
BLOCKERS = "select pg_blocking_pids(%s)"


class Rival(Generic[R]):
    """A call that runs in its own thread and competes with other sessions for locks."""

    def __init__(self, call: Callable[[], R]):
        self._call = call
        self._answer: R | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answer = self._call()
        except BaseException as error:
            self._error = error

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def result(self, patience: float = PATIENCE) -> R:
        self._thread.join(patience)
        assert self.is_done, f"The call is still blocked after {patience} seconds."
        if self._error is not None:
            raise self._error
        return self._answer  # pyright: ignore[reportReturnType]

    def wait_until_blocked(self, session: Engine) -> "Rival[R]":
        """Returns when Postgres reports that another session blocks this one."""
        self.wait_until_blocked_or_done(session)
        assert not self.is_done, f"The call was not blocked: {self._error or self._answer!r}"
        return self

    def wait_until_blocked_or_done(self, session: Engine) -> "Rival[R]":
        deadline = time.monotonic() + PATIENCE
        while not self.is_done and not is_blocked(session):
            assert time.monotonic() < deadline, "The call is neither blocked nor done."
            time.sleep(0.002)
        return self


def is_blocked(session: Engine) -> bool:
    row = observer(session).execute(BLOCKERS, [session.conn.info.backend_pid]).fetchone()
    return bool(row and row[0])


@cache
def observer(session: Engine) -> psycopg.Connection[Any]:
    """A second connection, because the session itself is blocked."""
    info = session.conn.info
    return psycopg.connect(info.dsn, password=info.password, autocommit=True)
