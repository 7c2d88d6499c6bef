"""A task: a registered handler with all settings for its jobs."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, ParamSpec, TypeVar

from batchmill.domain.failure import Rule, storable
from batchmill.domain.handler import HandlerSignature
from batchmill.domain.limits import Limits
from batchmill.domain.payload import LIMIT, Codec
from batchmill.domain.pipeline import Pipeline
from batchmill.domain.priority import checked_priority
from batchmill.domain.retry import Retry
from batchmill.errors import InvalidInput, Permanent

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
# The name prefix of built-in tasks.
BUILTIN = "batchmill."

P = ParamSpec("P")
R = TypeVar("R")


class Place(StrEnum):
    """Where a handler runs."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True, eq=False)
class Task(Generic[P, R]):
    """Call it like the original function, or pass it to `submit` or `Advance`."""

    name: str
    function: Callable[P, R]
    signature: HandlerSignature
    payload: Codec
    result: Codec
    place: Place
    retry: Retry = field(default_factory=Retry)
    limits: Limits = field(default_factory=Limits)
    timeout: float | None = None
    memory: int | None = None
    prepare: Callable[[], None] | None = None
    max_snoozes: int = 1_000
    payload_limit: int = LIMIT
    key: Callable[[Any], str] | None = None
    rules: Sequence[Rule] = ()
    entry: bool = False
    priority: int = 0
    pipeline: Pipeline | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InvalidInput(
                f'"{self.name}" is not a valid task name. Use up to 100 letters, digits, "_", '
                '"." and "-".'
            )
        if self.timeout is not None and not self.timeout > 0:
            raise InvalidInput(
                f"The timeout of {self.name} must be greater than 0 seconds, not {self.timeout!r}."
            )
        checked_priority(self.priority)
        for what, value in (("memory limit", self.memory), ("preparation", self.prepare)):
            if value is not None and self.place is not Place.PROCESS:
                raise InvalidInput(
                    f"{self.name} has a {what}, which needs a child process: add process=True."
                )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def dump(self, payload: Any) -> str:
        return self.payload.dump(payload, limit=self.payload_limit)

    def dump_result(self, value: Any) -> str:
        try:
            return self.result.dump(value, limit=self.payload_limit)
        except InvalidInput as error:
            raise Permanent(
                f"The result does not match the type that the task declares: {error}",
                code="bad_result",
            ) from None

    def key_of(self, payload: str) -> str:
        """Returns the limit key of a dumped payload. The task's `key` function receives the same
        value as the handler."""
        if self.key is None:
            return ""
        try:
            key = self.key(self.payload.load(payload))
        except Exception as error:
            raise InvalidInput(
                f"The key function of the task {self.name} failed for this payload "
                f"({type(error).__name__}). Send a payload with the fields that the key uses."
            ) from error
        if not isinstance(key, str) or not 0 < len(key) <= 500 or storable(key) != key:
            raise InvalidInput(
                f"The key of a job of {self.name} must be a text of 1 to 500 characters, not "
                f"{key!r}."
            )
        return key
