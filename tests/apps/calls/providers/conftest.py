"""A worker that all tests of this folder share, on a real database and a real object store.

The tests run on one event loop, so that Whisper is loaded once. Each test is a new organisation.
"""

import inspect
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from apps.calls.providers import tasks
from batchmill import Mill, WorkerOptions
from tests.apps.calls.fake_speechkit import FakeSpeechKit
from tests.apps.calls.providers.bench import Bench
from tests.apps.calls.providers.speech import spoken_call
from tests.artifacts.conftest import object_server
from tests.artifacts.objects import ObjectServer
from tests.postgres import Server, create_database, drop_database

__all__ = ["object_server"]

WORKER = WorkerOptions(concurrency=20, processes=1, patience=0.5, grace=1)
numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        function = getattr(item, "function", None)
        if here in item.path.parents and inspect.iscoroutinefunction(function):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bench(server: Server, template: str, object_server: ObjectServer) -> AsyncIterator[Bench]:
    dsn = create_database(server.dsn, "calls_providers", template)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in object_server.environment.items():
            patch.setenv(name, value)
        mill = Mill(dsn, artifacts=object_server.new_folder())
        for task in (tasks.local_operation, tasks.openai_operation):
            mill.tasks[task.name] = replace(task, retry=replace(task.retry, base=0))
        # A worker runs the tasks that its mill has when it starts.
        bench = Bench(mill)
        async with mill.running(WORKER):
            yield bench
    drop_database(server.dsn, "calls_providers")


@pytest.fixture
def tenant() -> str:
    return f"organisation-{next(numbers)}"


@pytest_asyncio.fixture(loop_scope="session")
async def fake(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeSpeechKit]:
    """A server that the settings of this process name."""
    with FakeSpeechKit() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server
        await bench.settle()


@pytest.fixture(scope="session")
def call(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A call of ten seconds, in OGG Opus. The agent is on the left, the caller on the right."""
    return spoken_call(tmp_path_factory.mktemp("call"))
