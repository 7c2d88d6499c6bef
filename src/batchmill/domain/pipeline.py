"""A pipeline: tasks that share limits."""

import re
from dataclasses import dataclass, field

from batchmill.domain.limits import Limits
from batchmill.errors import InvalidInput

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,49}")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The stages of a job. Pass it to each of its tasks: `@mill.task(pipeline=sheets)`.

    The name of such a task begins with the name of the pipeline and a dot. The limits count the
    running jobs of all stages together; a task may have limits of its own as well.
    """

    name: str
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InvalidInput(
                f'"{self.name}" is not a valid name for a pipeline. Use up to 50 letters, digits, '
                '"_" and "-".'
            )

    def task_name(self, name: str) -> str:
        return f"{self.name}.{name}"
