"""The files of an attempt, for synchronous handlers in a thread or a process."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol
from uuid import UUID

from batchmill.artifacts.storage import BLOCK
from batchmill.domain.artifact import Artifact, artifact_id
from batchmill.errors import InvalidInput


class ArtifactChannel(Protocol):
    """Transfers files between the handler and the worker."""

    def save_artifact(self, name: str, path: Path, media_type: str | None) -> Artifact: ...
    def artifact_path(self, id: UUID) -> Path: ...
    def release_artifact(self, id: UUID) -> None: ...
    def artifact_folder(self) -> Path: ...


class SyncJobArtifacts:
    """The same as `JobArtifacts`, without `await`. Files pass through the attempt's directory, so
    they may be larger than memory."""

    def __init__(self, channel: ArtifactChannel):
        self._channel = channel

    def save(
        self,
        name: str,
        source: bytes | Path | Iterable[bytes],
        *,
        media_type: str | None = None,
    ) -> Artifact:
        if isinstance(source, Path):
            return self._channel.save_artifact(name, source.absolute(), media_type)
        with tempfile.NamedTemporaryFile(dir=self.folder()) as file:
            for chunk in _chunks_of(source):
                file.write(chunk)
            file.flush()
            return self._channel.save_artifact(name, Path(file.name), media_type)

    def read(self, which: Artifact | UUID | str) -> bytes:
        return self.path(which).read_bytes()

    def chunks(self, which: Artifact | UUID | str) -> Iterator[bytes]:
        with self.path(which).open("rb") as file:
            while chunk := file.read(BLOCK):
                yield chunk

    def path(self, which: Artifact | UUID | str) -> Path:
        return self._channel.artifact_path(artifact_id(which))

    def release(self, which: Artifact | UUID | str) -> None:
        self._channel.release_artifact(artifact_id(which))

    def folder(self) -> Path:
        return self._channel.artifact_folder()


def _chunks_of(source: bytes | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(source, bytes | bytearray | memoryview):
        return (bytes(source),)
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise InvalidInput(
            "A file must be bytes, a pathlib.Path or an iterable of bytes, not "
            f"{type(source).__name__}."
        )
    return source
