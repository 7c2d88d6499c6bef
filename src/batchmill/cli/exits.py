"""The exit codes of commands."""

from enum import IntEnum

from batchmill import errors


class ExitCode(IntEnum):
    DONE = 0
    WORK_FAILED = 1
    BAD_INPUT = 2
    NOT_FOUND = 3
    NOT_USABLE = 4
    CONFLICT = 5
    UNEXPECTED = 70
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS = {
    ExitCode.DONE: "success",
    ExitCode.WORK_FAILED: "the job or batch failed, in whole or in part, or was cancelled",
    ExitCode.BAD_INPUT: "wrong usage, bad input or a wrong setting; nothing was written",
    ExitCode.NOT_FOUND: "no such batch, job, limit, schedule, key or quota",
    ExitCode.NOT_USABLE: "the database or its schema is not usable",
    ExitCode.CONFLICT: "the state does not allow this, or the idempotency key was used before",
    ExitCode.UNEXPECTED: "an unexpected error",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C; a worker drains and exits with 0",
    ExitCode.TERMINATED: "ended by SIGTERM; a worker drains and exits with 0",
}

_BY_ERROR: dict[type[BaseException], ExitCode] = {
    errors.JobFailed: ExitCode.WORK_FAILED,
    errors.InvalidInput: ExitCode.BAD_INPUT,
    errors.ConfigurationError: ExitCode.BAD_INPUT,
    errors.NotFound: ExitCode.NOT_FOUND,
    errors.DatabaseUnavailable: ExitCode.NOT_USABLE,
    errors.SchemaError: ExitCode.NOT_USABLE,
    errors.EmbeddedError: ExitCode.NOT_USABLE,
    errors.Conflict: ExitCode.CONFLICT,
    errors.IdempotencyConflict: ExitCode.CONFLICT,
    errors.Refused: ExitCode.CONFLICT,
    errors.StorageError: ExitCode.NOT_USABLE,
    errors.InvalidLink: ExitCode.BAD_INPUT,
}


def exit_code_of(error: BaseException) -> ExitCode:
    """The code of the nearest base class that has one."""
    kinds = (kind for kind in type(error).__mro__ if kind in _BY_ERROR)
    return _BY_ERROR.get(next(kinds, BaseException), ExitCode.UNEXPECTED)
