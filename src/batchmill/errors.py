"""Every error that batchmill raises on purpose.

    BatchmillError
    ├── ConfigurationError       a setting, the environment or an installation is wrong
    │   └── EmbeddedError        the embedded PostgreSQL is not available
    ├── DatabaseUnavailable      Postgres does not answer
    │   ├── MillClosed           the mill was closed while this was under way
    │   ├── StatementTimeout     Postgres took longer than a statement may
    │   └── ServerBusy           requests of other tenants use all connections
    ├── SchemaError              the schema is missing, too old or too new
    ├── InvalidInput             what the caller gave is refused; nothing was written
    │   ├── UnknownTask
    │   ├── InvalidPayload       with the path and the reason
    │   ├── PayloadTooLarge
    │   ├── InvalidCron
    │   ├── InvalidLimit
    │   ├── IdempotencyConflict  the key was used for another request
    │   ├── ArtifactTooLarge
    │   └── RangeNotSatisfiable  no byte of the file lies in the range that was asked for
    ├── NotFound                 no such batch, job, artifact, limit or schedule
    ├── Conflict                 the thing is not in a state that allows it
    │   ├── ErasureInProgress    the tenant is being erased
    │   └── RequestInProgress    another request with the same idempotency key is under way
    ├── Refused                  the caller may not do this
    │   ├── NotAuthenticated     without a key, or with one that is not valid
    │   ├── Forbidden            with this key, or from this place
    │   │   └── NotAnEntryPoint  tenants cannot submit to this task
    │   └── QuotaExceeded        more than the tenant may use, with `used` and `limit`
    │       ├── StorageExceeded  more bytes than the tenant may store
    │       └── TenantBusy       more requests at once than the tenant may make
    ├── JobFailed                raised by result() for a job that failed
    │   └── JobCancelled
    ├── LeaseLost                this attempt is no longer the newest; its writes are refused
    ├── FetchError               a URL could not be fetched
    │   ├── BadUrl               Permanent: malformed, or of a kind that is not fetched
    │   ├── AddressRefused       Permanent: not a public address
    │   ├── TooManyRedirects     Permanent
    │   ├── ResponseTooLarge     Permanent
    │   ├── BadResponse          Permanent: not HTTP, or not in the declared encoding
    │   ├── BadStatus            retried or not, depending on the status
    │   ├── ResponseTooSlow      Transient
    │   └── Unreachable          Transient: no such name, no connection, or it broke off
    ├── ModelError               a model gave no usable answer
    │   ├── ModelBadStatus       retried or not, depending on the status
    │   ├── ModelTooSlow         Transient
    │   ├── ModelUnreachable     Transient: no connection, or it broke off
    │   ├── ModelBadAnswer       Transient: not in the requested format; the next answer may be
    │   ├── ModelAnswerTooLong   Permanent
    │   └── ModelDeclined        Permanent: the model refuses to answer
    ├── StorageError             the artifact store failed
    ├── InvalidLink              the signature does not match the link
    │   └── LinkExpired
    ├── Transient                raise in a handler: try again
    └── Permanent                raise in a handler: trying again would not help

Each has a `code` for programs, stable across versions. Its text is for people.
"""

from collections.abc import Mapping
from typing import ClassVar


class BatchmillError(Exception):
    code: ClassVar[str] = "error"


class ConfigurationError(BatchmillError):
    code = "configuration"


class EmbeddedError(ConfigurationError):
    code = "embedded"


class DatabaseUnavailable(BatchmillError):
    code = "database_unavailable"


class MillClosed(DatabaseUnavailable):
    code = "mill_closed"


class StatementTimeout(DatabaseUnavailable):
    code = "statement_timeout"


class ServerBusy(DatabaseUnavailable):
    code = "server_busy"


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


class ArtifactTooLarge(InvalidInput):
    code = "artifact_too_large"


class RangeNotSatisfiable(InvalidInput):
    code = "range_not_satisfiable"

    def __init__(self, size: int):
        self.size = size
        super().__init__(f"The requested range is outside the file, which has {size:,} bytes.")


class NotFound(BatchmillError):
    code = "not_found"


class Conflict(BatchmillError):
    code = "conflict"


class ErasureInProgress(Conflict):
    code = "erasure_in_progress"


class RequestInProgress(Conflict):
    code = "request_in_progress"


class Refused(BatchmillError):
    code = "refused"


class NotAuthenticated(Refused):
    code = "not_authenticated"


class Forbidden(Refused):
    code = "forbidden"


class NotAnEntryPoint(Forbidden):
    code = "not_an_entry_point"


class QuotaExceeded(Refused):
    code = "quota_exceeded"

    def __init__(
        self,
        message: str,
        *,
        used: int | None = None,
        limit: int | None = None,
        retry_after: float | None = None,
    ):
        self.used = used
        self.limit = limit
        self.retry_after = retry_after
        super().__init__(message)


class StorageExceeded(QuotaExceeded):
    """`used` and `limit` are bytes."""

    code = "storage_exceeded"

    def __init__(
        self, message: str | None = None, *, used: int | None = None, limit: int | None = None
    ):
        super().__init__(
            message
            or (
                f"The storage quota does not allow this file: {used:,} of {limit:,} bytes are "
                "used. Delete files or batches that are no longer needed."
            ),
            used=used,
            limit=limit,
        )


class TenantBusy(QuotaExceeded):
    code = "tenant_busy"


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


class StorageError(BatchmillError):
    """`is_full`: there is no space left."""

    code = "storage"

    def __init__(self, message: str, *, is_full: bool = False):
        self.is_full = is_full
        super().__init__(message)


class InvalidLink(BatchmillError):
    code = "invalid_link"


class LinkExpired(InvalidLink):
    code = "link_expired"


class HandlerError(BatchmillError):
    """Base of the errors that handlers raise. End users see the message unchanged."""

    def __init__(self, message: str, *, code: str, retry_after: float | None = None):
        self.error_code = code
        self.retry_after = retry_after
        super().__init__(message)


class Transient(HandlerError):
    """The attempt failed, but another one may succeed. The task's policy decides when to retry."""

    code = "transient"

    def __init__(self, message: str, *, code: str = "transient", retry_after: float | None = None):
        super().__init__(message, code=code, retry_after=retry_after)


class Permanent(HandlerError):
    """The attempt failed, and every other attempt would fail too. The job fails now."""

    code = "permanent"

    def __init__(self, message: str, *, code: str = "permanent"):
        super().__init__(message, code=code)


class FetchError(HandlerError):
    """The message may name a host, but never an address: it may belong to an internal network,
    which end users must not learn about."""

    code = "fetch"

    def __init__(self, message: str):
        super().__init__(message, code=self.code)


class BadUrl(FetchError, Permanent):
    code = "bad_url"


class AddressRefused(FetchError, Permanent):
    code = "address_refused"


class TooManyRedirects(FetchError, Permanent):
    code = "too_many_redirects"


class ResponseTooLarge(FetchError, Permanent):
    code = "too_large"


class BadResponse(FetchError, Permanent):
    code = "bad_response"


class BadStatus(FetchError):
    code = "bad_status"

    def __init__(self, message: str, *, status: int, headers: Mapping[str, str]):
        self.status = status
        self.headers = headers
        super().__init__(message)


class ResponseTooSlow(FetchError, Transient):
    code = "too_slow"


class Unreachable(FetchError, Transient):
    code = "unreachable"


class ModelError(HandlerError):
    """End users may see the message, so it names no endpoint."""

    code = "model"

    def __init__(self, message: str):
        super().__init__(message, code=self.code)


class ModelBadStatus(ModelError):
    """The message is for operators: it contains the beginning of the answer."""

    code = "model_bad_status"

    def __init__(self, message: str, *, status: int, headers: Mapping[str, str]):
        self.status = status
        self.headers = headers
        super().__init__(message)


class ModelTooSlow(ModelError, Transient):
    code = "model_too_slow"


class ModelUnreachable(ModelError, Transient):
    code = "model_unreachable"


class ModelBadAnswer(ModelError, Transient):
    code = "model_bad_answer"


class ModelAnswerTooLong(ModelError, Permanent):
    code = "model_answer_too_long"


class ModelDeclined(ModelError, Permanent):
    code = "model_declined"
