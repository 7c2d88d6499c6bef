"""The tasks of a mill, made from functions and looked up by name, and the limits it declares."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from batchmill.domain.duplicate import DuplicateRecord
from batchmill.domain.failure import Rule
from batchmill.domain.handler import HandlerSignature
from batchmill.domain.job import JobRecord
from batchmill.domain.limits import ProviderLimit
from batchmill.domain.outcome import Advance, Snooze
from batchmill.domain.payload import Codec
from batchmill.domain.pipeline import Pipeline
from batchmill.domain.task import BUILTIN, Place, Task
from batchmill.errors import InvalidInput
from batchmill.jobinfo import JobInfo


class Registry:
    def __init__(self, rules: Sequence[Rule] = (), *, builtin: bool = False):
        self.tasks: dict[str, Task[..., Any]] = {}
        self.limits: dict[str, ProviderLimit] = {}
        self._rules = tuple(rules)
        self._is_builtin = builtin

    def add(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        process: bool = False,
        rules: Sequence[Rule] = (),
        pipeline: Pipeline | None = None,
        **options: Any,
    ) -> Task[..., Any]:
        called: str = name or getattr(function, "__name__", type(function).__name__)
        signature = HandlerSignature.of(
            function, job_types=(JobInfo,), outcome_types=(Advance, Snooze)
        )
        task = Task(
            name=pipeline.task_name(called) if pipeline else called,
            function=function,
            signature=signature,
            payload=Codec(signature.payload),
            result=Codec(signature.result),
            place=_place(signature, process),
            rules=(*rules, *self._rules),
            pipeline=pipeline,
            **options,
        )
        if task.name.startswith(BUILTIN) and not self._is_builtin:
            raise InvalidInput(f'Names that begin with "{BUILTIN}" are reserved. Use another name.')
        if task.name in self.tasks:
            raise InvalidInput(
                f'A task "{task.name}" is already registered. Give this one another name with '
                "name=…."
            )
        self.tasks[task.name] = task
        return task

    def add_limit(self, limit: ProviderLimit) -> None:
        if limit.name in self.limits:
            raise InvalidInput(f'The limit "{limit.name}" is already declared.')
        self.limits[limit.name] = limit

    def find(self, task: Task[..., Any] | str) -> Task[..., Any]:
        """A name may be registered in other processes only; the database checks that it exists."""
        if isinstance(task, Task):
            return task
        return self.tasks.get(task) or _elsewhere(task)

    def load_result(self, job: JobRecord | DuplicateRecord) -> Any:
        """Returns the result in the type of the task's annotation, or as plain data if the task is
        not registered in this process."""
        task = self.tasks.get(job.task or "")
        return task.result.load_parsed(job.result) if task else job.result


def _place(signature: HandlerSignature, process: bool) -> Place:
    if process and signature.is_async:
        raise InvalidInput("A task with process=True must be a plain function, not an async one.")
    if process:
        return Place.PROCESS
    return Place.LOOP if signature.is_async else Place.THREAD


def _elsewhere(name: str) -> Task[..., Any]:
    """A task that is not registered in this process. The database checks its payload, the payload's
    size, and whether it needs a key."""

    def handler(payload: Any) -> Any:
        raise InvalidInput(f'The task "{name}" is not registered in this process.')

    return Task(
        name=name,
        function=handler,
        signature=HandlerSignature.of(handler),
        payload=Codec(),
        result=Codec(),
        place=Place.ELSEWHERE,
        payload_limit=sys.maxsize,
    )
