"""Two sessions at once, stopped exactly where one waits for the other."""

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
    """A call in a thread of its own."""

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
        assert self.is_done, "The rival waits for ever."
        if self._error is not None:
            raise self._error
        return self._answer  # pyright: ignore[reportReturnType]

    def wait_until_blocked(self, session: Engine) -> "Rival[R]":
        """Returns once Postgres itself says that the session waits for another."""
        self.wait_until_blocked_or_done(session)
        assert not self.is_done, f"It did not wait: {self._error or self._answer!r}"
        return self

    def wait_until_blocked_or_done(self, session: Engine) -> "Rival[R]":
        deadline = time.monotonic() + PATIENCE
        while not self.is_done and not is_blocked(session):
            assert time.monotonic() < deadline, "It neither waits nor ends."
            time.sleep(0.002)
        return self


def is_blocked(session: Engine) -> bool:
    row = witness(session).execute(BLOCKERS, [session.conn.info.backend_pid]).fetchone()
    return bool(row and row[0])


@cache
def witness(session: Engine) -> psycopg.Connection[Any]:
    """A connection beside the session, which is busy waiting."""
    info = session.conn.info
    return psycopg.connect(info.dsn, password=info.password, autocommit=True)
