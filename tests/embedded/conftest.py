import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .users import is_stopped


@contextmanager
def _reachable_directory() -> Iterator[Path]:
    """A directory with a short path that other users can enter, unlike pytest's `tmp_path`."""
    path = Path(tempfile.mkdtemp(prefix="batchmill-", dir="/tmp"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@pytest.fixture
def directory() -> Iterator[Path]:
    with _reachable_directory() as path:
        yield path


@pytest.fixture
def new_home(directory: Path) -> Path:
    return directory / "home"


@pytest.fixture(scope="session")
def shared_home() -> Iterator[Path]:
    with _reachable_directory() as path:
        yield path / "home"


@pytest.fixture
def home(shared_home: Path) -> Iterator[Path]:
    """A home that tests share, because creating a cluster is slow. Tests must stop its server."""
    yield shared_home
    assert is_stopped(shared_home)
