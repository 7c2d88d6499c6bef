"""Every error that batchmill raises on purpose.

    BatchmillError
    ├── ConfigurationError       a setting, the environment or an installation is wrong
    │   └── EmbeddedError        the embedded PostgreSQL cannot be had
    ├── DatabaseUnavailable      Postgres does not answer
    ├── SchemaError              the schema is missing, too old or too new
    ├── InvalidInput             what the caller gave is refused; nothing was written
    │   ├── UnknownTask
    │   ├── InvalidPayload       with the path and the reason
    │   ├── PayloadTooLarge
    │   ├── InvalidCron
    │   ├── InvalidLimit
    │   └── IdempotencyConflict  the key was used for another request
    ├── NotFound                 no such batch, job, limit or schedule
    ├── Conflict                 the thing is not in a state that allows it
    ├── JobFailed                raised by result() for a job that failed
    │   └── JobCancelled
    ├── LeaseLost                this attempt is no longer the newest; its writes are refused
    ├── Transient                raise in a handler: try again
    └── Permanent                raise in a handler: trying again would not help

Each has a `code`, stable across versions, for programs; its text is for people.
"""

from typing import ClassVar


class BatchmillError(Exception):
    code: ClassVar[str] = "error"


class ConfigurationError(BatchmillError):
    code = "configuration"


class EmbeddedError(ConfigurationError):
    code = "embedded"


class DatabaseUnavailable(BatchmillError):
    code = "database_unavailable"


class SchemaError(BatchmillError):
    code = "schema"


class InvalidInput(BatchmillError):
    code = "invalid_input"


class UnknownTask(InvalidInput):
    code = "unknown_task"


class InvalidPayload(InvalidInput):
    code = "invalid_payload"

    def __init__(self, path: str, reason: str):
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")


class PayloadTooLarge(InvalidInput):
    code = "payload_too_large"


class InvalidCron(InvalidInput):
    code = "invalid_cron"


class InvalidLimit(InvalidInput):
    code = "invalid_limit"


class IdempotencyConflict(InvalidInput):
    code = "idempotency_conflict"


class NotFound(BatchmillError):
    code = "not_found"


class Conflict(BatchmillError):
    code = "conflict"


class JobFailed(BatchmillError):
    code = "job_failed"

    def __init__(self, message: str, *, error_code: str, job_id: int):
        self.error_code = error_code
        self.job_id = job_id
        super().__init__(message)


class JobCancelled(JobFailed):
    code = "job_cancelled"


class LeaseLost(BatchmillError):
    code = "lease_lost"


class HandlerError(BatchmillError):
    """What Transient and Permanent share: the message is shown to end users as it stands."""

    def __init__(self, message: str, *, code: str, retry_after: float | None = None):
        self.error_code = code
        self.retry_after = retry_after
        super().__init__(message)


class Transient(HandlerError):
    """The attempt failed, but another one may succeed; retried by the task's policy."""

    code = "transient"

    def __init__(self, message: str, *, code: str = "transient", retry_after: float | None = None):
        super().__init__(message, code=code, retry_after=retry_after)


class Permanent(HandlerError):
    """The attempt failed, and so would every other; the job fails now."""

    code = "permanent"

    def __init__(self, message: str, *, code: str = "permanent"):
        super().__init__(message, code=code)
