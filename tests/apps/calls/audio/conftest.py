import shutil
from pathlib import Path

import pytest

from tests.apps.calls.audio.recordings import Recordings


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    if shutil.which("ffmpeg") is None:
        pytest.skip("Debian's ffmpeg is not installed.")
    return Recordings(tmp_path_factory.mktemp("recordings"))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "audio.ogg"
