"""What a provider of transcripts offers: operations that are started, looked at and cancelled.

An operation runs outside the job that follows it, and may take hours. Handlers never wait for it.
"""

from dataclasses import dataclass
from typing import Protocol

from apps.calls.models import Recording, Transcript
from batchmill import Client, Job, Permanent, Transient


class ProviderNotConfigured(Permanent):
    """The provider lacks a setting, a package or an object store."""

    def __init__(self, message: str):
        super().__init__(message, code="PROVIDER_NOT_CONFIGURED")


class UnsupportedLanguage(Permanent):
    def __init__(self, message: str):
        super().__init__(message, code="UNSUPPORTED_LANGUAGE")


class OperationFailed(Transient):
    """The operation ended without a transcript. A new operation may succeed."""

    def __init__(self, message: str):
        super().__init__(message, code="OPERATION_FAILED")


class OperationRefused(Permanent):
    """The operation ended without a transcript. A new one would end in the same way, or the
    retries of the operation are used up. A user can retry the call."""

    def __init__(self, message: str):
        super().__init__(message, code="OPERATION_REFUSED")


@dataclass(frozen=True, slots=True)
class Pending:
    """The operation has not ended. `message` and `percent` are its progress, if the provider
    reports it. With `is_waiting`, it does not run now: it waits for its turn, or for a retry."""

    message: str | None = None
    percent: float | None = None
    is_waiting: bool = False


class Provider(Protocol):
    """`interval` is the number of seconds between two looks. `longest` is the longest time in
    seconds that an operation for a recording of this length may take."""

    name: str
    interval: float

    def longest(self, duration: float) -> float: ...

    async def check(self, mill: Client, language: str) -> None:
        """Raises ProviderNotConfigured or UnsupportedLanguage. Called at submit and at start."""
        ...

    async def start(
        self, job: Job, recording: Recording, token: str, *, after: str | None = None
    ) -> str:
        """Starts an operation and returns its id. A second call with the same token and recording
        returns the same operation, if the provider supports that: see the module of each. `after`
        is the operation that failed before; a provider that can continue it returns its id."""
        ...

    async def look(self, job: Job, recording: Recording, operation: str) -> Transcript | Pending:
        """The transcript if the operation is done, otherwise Pending. Raises OperationFailed or
        OperationRefused if the operation ended without a transcript; any other error means that
        the look failed, not the operation."""
        ...

    async def cancel(self, mill: Client, operation: str) -> None:
        """Stops the operation, if it still runs and the provider can. Can be repeated."""
        ...

    async def release(self, mill: Client, operation: str) -> None:
        """Deletes the provider's copy of the transcript, once nobody needs it. Can be repeated.
        Afterwards the operation counts as failed."""
        ...
