"""A child process that runs handlers, one at a time, for the worker that started it.

It exchanges JSON with the worker over a socket, so neither side unpickles objects. A memory limit
or a crash affects only the child: the worker sees the socket close and continues. Processes that
its handlers start end with it (`supervisor.py`).
"""

import importlib
import json
import os
import resource
import runpy
import sys
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from uuid import UUID

from batchmill.domain.artifact import Artifact
from batchmill.domain.failure import classify
from batchmill.domain.job import Claim, Progress
from batchmill.domain.outcome import Advance, Snooze
from batchmill.domain.payload import Codec
from batchmill.domain.task import Task
from batchmill.domain.usage import Amount, exact
from batchmill.errors import (
    BatchmillError,
    DatabaseUnavailable,
    InvalidInput,
    InvalidLimit,
    LeaseLost,
    NotFound,
    StorageError,
    StorageExceeded,
)
from batchmill.job import SyncJob
from batchmill.telemetry.tracing import continuing
from batchmill.worker import supervisor

# A `nice` value. While the worker needs the CPUs, a child gets about a tenth of its share.
PRIORITY = 10

REFUSALS: dict[str, type[BatchmillError]] = {
    error.code: error
    for error in (
        *(DatabaseUnavailable, InvalidInput, InvalidLimit, LeaseLost, NotFound),
        *(StorageError, StorageExceeded),
    )
}


class ChildJob(SyncJob):
    """Sends each amount at once, so that it counts even if the process is killed."""

    def __init__(self, claim: Claim, conn: Connection, timeout: float | None):
        super().__init__(claim, PipeChannel(conn), timeout)
        self._conn = conn

    def use(self, name: str, amount: Amount) -> None:
        super().use(name, amount)
        send(self._conn, {"use": name, "amount": str(exact(amount))})


class PipeChannel:
    def __init__(self, conn: Connection):
        self._conn = conn

    def report(self, progress: Progress) -> None:
        send(self._conn, {"progress": [progress.stage, progress.message, progress.percent]})

    def save_checkpoint(self, name: str, value: str) -> None:
        send(self._conn, {"checkpoint": name, "value": value})
        if not receive(self._conn)["kept"]:
            raise LeaseLost("This attempt has ended or was replaced, so its checkpoint is refused.")

    def enter_limit(self, name: str) -> int:
        return self._ask({"enter": name})

    def leave_limit(self, number: int) -> None:
        send(self._conn, {"leave": number})

    def save_artifact(self, name: str, path: Path, media_type: str | None) -> Artifact:
        saved = self._ask({"save": name, "path": str(path), "media_type": media_type})
        return Artifact(UUID(saved.pop("artifact")), **saved)

    def artifact_path(self, id: UUID) -> Path:
        return Path(self._ask({"fetch": str(id)}))

    def release_artifact(self, id: UUID) -> None:
        send(self._conn, {"release": str(id)})

    def artifact_folder(self) -> Path:
        return Path(self._ask({"folder": True}))

    def _ask(self, message: dict[str, Any]) -> Any:
        send(self._conn, message)
        answer = receive(self._conn)
        if "refused" in answer:
            raise REFUSALS.get(answer["refused"], BatchmillError)(answer["message"])
        return answer["done"]


def send(conn: Connection, message: dict[str, Any]) -> None:
    conn.send_bytes(json.dumps(message).encode())


def receive(conn: Connection) -> dict[str, Any]:
    return json.loads(conn.recv_bytes())


def serve(conn: Connection) -> None:
    """Runs the jobs it receives until the worker closes the socket."""
    try:
        sys.path[:] = receive(conn)["path"]
        while True:
            order = receive(conn)
            if "prepare" in order:
                prepare_all(order["prepare"])
                send(conn, {"prepared": True})
                continue
            with continuing(order["traceparent"]):
                answered = answer(conn, order)
            send(conn, answered | {"left": supervisor.has_children()})
    except (EOFError, OSError):
        return


def answer(conn: Connection, order: dict[str, Any]) -> dict[str, Any]:
    task: Task[..., Any] | None = None
    try:
        _limit_memory(order["memory"])
        task = find_task(order["module"], order["name"], order["main"])
        prepare(task)
        claim = Claim._make(order["claim"])
        payload = task.payload.load(claim.payload)
        job = ChildJob(claim, conn, order["timeout"])
        send(conn, {"begun": True})
        return describe(task, task.function(**task.signature.arguments(job, payload)))
    except (Exception, SystemExit) as error:
        failure = classify(error, task.rules if task else (), now=datetime.now(UTC))
        return {"failure": [getattr(failure, name) for name in failure.__slots__]}
    finally:
        _limit_memory(None)


def prepare_all(sources: list[dict[str, Any]]) -> None:
    """Prepares for jobs in advance. The job that needs what fails here fails for the same reason,
    and reports it."""
    for source in sources:
        with suppress(Exception, SystemExit):
            prepare(find_task(**source))


@cache
def prepare(task: Task[..., Any]) -> None:
    """Once in each process."""
    if task.prepare is not None:
        task.prepare()


def describe(task: Task[..., Any], value: Any) -> dict[str, Any]:
    match value:
        case Advance(task=str(name), payload=payload):
            return {"advance": name, "payload": Codec().dump(payload, limit=sys.maxsize)}
        case Advance(task=Task() as target, payload=payload):
            return {"advance": target.name, "payload": target.dump(payload)}
        case Snooze(seconds=seconds):
            return {"snooze": seconds}
        case _:
            return {"result": task.dump_result(value)}


@cache
def find_task(module: str, name: str, main: str | None) -> Task[..., Any]:
    """Returns the task, imported from the same module or script as in the worker."""
    space = (
        runpy.run_path(main, run_name="__batchmill_child__")
        if main
        else vars(importlib.import_module(module))
    )
    for value in space.values():
        if isinstance(value, Task) and value.name == name:
            return value
    raise LookupError(
        f"{module} has no task {name} at its top level. Define tasks with process=True there."
    )


def lower_priority() -> None:
    """Lowers the priority of this process, so that the worker can renew its lease and serve
    requests when CPUs are scarce. Linux may schedule by session (autogroup) instead of by process.
    This process leads a session, so both priorities are set."""
    os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    # The file is missing without autogroups. The kernel may refuse a change soon after another.
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(PRIORITY))


def _limit_memory(most: int | None) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard if most is None else most, hard))


def main(descriptor: int, worker: int | None = None) -> None:
    def run() -> None:
        lower_priority()
        serve(Connection(descriptor))

    if worker is None:
        run()
    else:
        supervisor.supervised(run, worker=worker)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
