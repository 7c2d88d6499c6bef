"""Without the optional packages jobs run as usual, and metrics name the missing package."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

# Python imports this file at startup if it is on the path, also in child processes.
BLOCKER = """
import sys


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"prometheus_client", "opentelemetry"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Blocker())
"""

PROGRAM = """
import asyncio
from batchmill import ConfigurationError, Mill, WorkerOptions

mill = Mill()


@mill.task
async def on_loop(n: int) -> int:
    return n


@mill.task
def in_thread(n: int) -> int:
    return n


@mill.task(process=True)
def in_process(n: int) -> int:
    return n


async def main():
    async with mill.running(WorkerOptions(processes=1)):
        for task in (on_loop, in_thread, in_process):
            batch = await mill.submit(task, [1], labels={"a": "b"})
            assert (await batch.results()).values == [1]
            assert await (await mill.enqueue(task, 2)).result() == 2
            assert (await batch.get()).labels == {"a": "b"}
    try:
        mill.metrics
    except ConfigurationError as error:
        print(error)


if __name__ == "__main__":
    asyncio.run(main())
"""


def environment(tmp_path: Path, dsn: str) -> dict[str, str]:
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    return os.environ | {"DATABASE_URL": dsn, "PYTHONPATH": path}


async def run(tmp_path: Path, dsn: str, *words: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, *words],
        cwd=tmp_path,
        env=environment(tmp_path, dsn),
        capture_output=True,
        text=True,
    )


async def test_jobs_run_without_the_optional_packages(tmp_path: Path, dsn: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ran = await run(tmp_path, dsn, "program.py")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith("pip install 'batchmill[metrics]'.\n")


async def test_a_worker_with_a_metrics_port_names_the_missing_package(
    tmp_path: Path, dsn: str
) -> None:
    ran = await run(
        *(tmp_path, dsn, "-m", "batchmill", "worker"),
        *("--app", "tests.cli.shop:mill", "--metrics-port", "0"),
    )
    assert ran.returncode == 2
    assert "pip install 'batchmill[metrics]'" in ran.stderr
    assert "Traceback" not in ran.stderr
