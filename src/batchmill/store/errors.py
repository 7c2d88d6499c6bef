"""Translates psycopg's errors into batchmill's."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from batchmill.domain.job import Claim
from batchmill.errors import (
    BatchmillError,
    ConfigurationError,
    Conflict,
    DatabaseUnavailable,
    ErasureInProgress,
    IdempotencyConflict,
    InvalidInput,
    LeaseLost,
    MillClosed,
    NotAnEntryPoint,
    NotFound,
    PayloadTooLarge,
    QuotaExceeded,
    SchemaError,
    StatementTimeout,
    UnknownTask,
)

OWN: dict[str, type[BatchmillError]] = {
    "BM001": UnknownTask,
    "BM002": InvalidInput,
    "BM003": PayloadTooLarge,
    "BM004": IdempotencyConflict,
    "BM005": NotFound,
    "BM006": Conflict,
    "BM010": LeaseLost,
    "BM014": NotAnEntryPoint,
    "BM015": ErasureInProgress,
}
OVER_QUOTA = "BM011"
# SQLSTATE classes: invalid data (22) and exceeded program limits (54).
UNSTORABLE = {"22", "54"}
NO_SCHEMA = {"3F000", "42P01", "42883", "42704"}
TRY_AGAIN = {"40001", "40P01"}
READ_ONLY = "25006"
NOT_PERMITTED = "42501"
LOCK_TIMEOUT = "55P03"
NO_TRANSACTION = "25P01"
CANCELLED = "57014"

# Raised when the server is gone, is shutting down, is not ready yet, or is now a standby.
GONE = (psycopg.OperationalError, psycopg.InterfaceError, OSError)


def is_unavailable(error: BaseException) -> bool:
    """True if another connection, or the same one later, may succeed."""
    if isinstance(error, DatabaseUnavailable):
        return not isinstance(error, MillClosed)
    return isinstance(error, GONE) or getattr(error, "sqlstate", None) == READ_ONLY


def is_read_only(error: BaseException) -> bool:
    """Also true for an error that has already been translated."""
    return READ_ONLY in (getattr(e, "sqlstate", None) for e in (error, error.__cause__))


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        if (ours := translate(error)) is error:
            raise
        raise ours from error
    except BatchmillError:
        raise
    except Exception as error:
        # SQLAlchemy and Django wrap the driver's errors.
        cause = getattr(error, "orig", None) or error.__cause__
        if isinstance(cause, psycopg.Error) and (ours := translate(cause)) is not cause:
            raise ours from error
        raise


def translate(error: Exception) -> Exception:
    state = getattr(error, "sqlstate", None)
    diag = getattr(error, "diag", None)
    message = (diag and diag.message_primary) or str(error)
    if state in OWN:
        return OWN[state](message)
    if state == OVER_QUOTA and diag and diag.message_detail:
        return QuotaExceeded(message, **json.loads(diag.message_detail))
    if state in NO_SCHEMA and "batchmill" in str(error):
        return SchemaError(
            "The database has no batchmill schema, or an old one. Run `batchmill migrate up`."
        )
    if state is not None and state[:2] in UNSTORABLE:
        return InvalidInput(f"Postgres cannot store this text: {message}.")
    if state == NO_TRANSACTION:
        return InvalidInput(
            "A batch of this size is submitted in several steps, which need one transaction. "
            "Begin a transaction on the connection."
        )
    if state == NOT_PERMITTED:
        return ConfigurationError(f"Postgres refuses this to the database role: {message}.")
    if state == READ_ONLY:
        return DatabaseUnavailable(
            "Postgres is read-only: it is a standby, or a failover is in progress."
        )
    if state in TRY_AGAIN or state == LOCK_TIMEOUT:
        return error
    if state == CANCELLED:
        return StatementTimeout(
            "Postgres cancelled a statement that exceeded its time limit. Request less data, "
            "or try again later."
        )
    if isinstance(error, GONE):
        return DatabaseUnavailable(f"Postgres does not answer: {_first_line(error)}")
    return error


def lease_lost(claim: Claim) -> LeaseLost:
    return LeaseLost(
        f"This attempt of job {claim.id} has ended or was replaced, so its write is refused."
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
