"""What every handler can read about its job, on the event loop, in a thread or in a process."""

import logging
import threading
import time
from decimal import Decimal
from typing import Any
from uuid import UUID

from batchmill.domain.job import Claim
from batchmill.domain.usage import Amount, Usage

LOG = logging.getLogger("batchmill.job")
# A handler may record from several threads. All jobs share one lock, so that a job that records
# nothing does not have to create one.
RECORDING = threading.Lock()


class JobInfo:
    """Created when the handler starts."""

    def __init__(self, claim: Claim, timeout: float | None = None):
        self.id = claim.id
        self.position = claim.position
        self.task = claim.task
        self.tenant = claim.tenant
        self.key = claim.key
        self.attempt = claim.attempt
        self.snoozes = claim.snoozes
        self.labels = claim.labels
        self.cancelled = False
        self._claim = claim
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._checkpoints = claim.checkpoints or {}
        self._usage: Usage | None = None

    @property
    def batch_id(self) -> UUID | None:
        return UUID(self._claim.batch_id) if self._claim.batch_id else None

    @property
    def remaining(self) -> float | None:
        """Seconds until the task's timeout; None if the task has no timeout."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def use(self, name: str, amount: Amount) -> None:
        """Records an amount that this attempt used: tokens, seconds, pages, money. Amounts with the
        same name add up. They are added to the totals when the attempt ends, however it ends."""
        with RECORDING:
            self._usage = self._usage or Usage()
            self._usage.add(name, amount)

    @property
    def usage(self) -> dict[str, Decimal]:
        """The amounts that this attempt has recorded so far."""
        if self._usage is None:
            return {}
        with RECORDING:
            return dict(self._usage.amounts)

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger that adds the job, its task and its attempt to every line."""
        about = {"job_id": self.id, "task": self.task, "attempt": self.attempt}
        return _BoundLogger(LOG, about)


class _BoundLogger(logging.LoggerAdapter[logging.Logger]):
    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        about = dict(self.extra or {})
        kwargs["extra"] = {**about, **kwargs.get("extra", {})}
        return f"[{about['task']} job {about['job_id']} attempt {about['attempt']}] {msg}", kwargs
