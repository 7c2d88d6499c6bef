"""A real S3-compatible server: SeaweedFS, on loopback ports."""

import itertools
import json
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.postgres import Daemon, free_port

KEY, SECRET, BUCKET = "batchmill", "only-for-tests", "files"
PORTS = ("master", "volume", "filer", "s3")
numbers = itertools.count(1)


def weed() -> Path | None:
    """The program `weed`. Its package installs it next to the interpreter."""
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    return Path(found) if found else None


class ObjectServer(Daemon):
    stop_signal = "KILL"

    def __init__(self, program: Path):
        super().__init__()
        self._program = program
        self._ports = {
            f"{part}.port{kind}": free_port() for part in PORTS for kind in ("", ".grpc")
        }
        self._config = self.write("s3.json", json.dumps(CONFIG))
        self._data = self.directory / "data"
        self._data.mkdir()
        self._give_to_user(self._data)

    @property
    def dsn(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.dsn,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def new_folder(self) -> str:
        return f"s3://{BUCKET}/test-{next(numbers)}"

    def command(self) -> Sequence[str | Path]:
        return [
            *(self._program, "server", "-s3", f"-dir={self._data}", f"-s3.config={self._config}"),
            *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false"),
            *("-volume.max=20", "-master.volumeSizeLimitMB=256", "-master.electionTimeout=1s"),
            *("-s3.port.iceberg=0", "-s3.port.lance=0"),
            f"-s3.localSocket={self.directory / 's3.sock'}",
            f"-filer.localSocket={self.directory / 'filer.sock'}",
            *(f"-{name}={port}" for name, port in self._ports.items()),
        ]

    def answers(self) -> bool:
        """Whether a file can be written, so that all parts are connected, and S3 is ready."""
        try:
            self._filer(f"buckets/{BUCKET}/ready", b"yes")
            self._get(f"{self.dsn}/healthz")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
        return True

    def unfinished_uploads(self) -> list[str]:
        """Uploads that were neither completed nor aborted."""
        try:
            listed = self._filer(f"buckets/{BUCKET}/.uploads/")
        except urllib.error.HTTPError:
            return []
        return [entry["FullPath"] for entry in listed["Entries"] or ()]

    def unfinished_parts(self) -> int:
        """The number of parts of unfinished uploads that the server has received."""
        uploads = (self._filer(f"{path.lstrip('/')}/") for path in self.unfinished_uploads())
        return sum(len(listed["Entries"] or ()) for listed in uploads)

    def _filer(self, path: str, data: bytes | None = None) -> Any:
        answer = self._get(f"http://127.0.0.1:{self._ports['filer.port']}/{path}", data)
        return json.loads(answer or b"{}")

    def _get(self, url: str, data: bytes | None = None) -> bytes:
        method, accept = "PUT" if data else "GET", {"Accept": "application/json"}
        request = urllib.request.Request(url, data, accept, method=method)
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.read()


CONFIG = {
    "identities": [
        {
            "name": "tests",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List"],
        }
    ]
}
