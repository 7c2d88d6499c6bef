"""A run of a few seconds shows that the soak test works. Its speeds mean nothing."""

import asyncio
import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.soak.abusers import ABUSERS
from benchmarks.soak.gauges import Connections, Gauge
from benchmarks.soak.latency import Latencies, quantile
from benchmarks.soak.outcome import Outcome, rows_of
from benchmarks.soak.schedule import every

ROOT = Path(__file__).parents[2]
SOME = ("wrong-keys", "uploads", "small-batches", "idle", "share-codes")


@pytest.mark.timeout(300)
def test_a_soak_of_a_few_seconds_measures_the_abuse_and_writes_the_results(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.soak", "--minutes", "0.15"),
            *("--only", ",".join(SOME), "--results", str(tmp_path)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (tmp_path / "results.json").exists(), done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert all("requests took" in miss for miss in results["goals missed"]), results["goals missed"]
    assert {"submit", "results", "upload", "download", "done"} <= results["tenant"].keys()
    assert {"hand in", "read"} <= results["visitor"].keys()
    assert results["abusers"].keys() == set(SOME)
    assert "401" in results["abusers"]["wrong-keys"]
    assert (tmp_path / "README.md").read_text() in done.stdout + "\n"


def test_every_missed_goal_is_reported() -> None:
    gauges = {"service": Gauge(1, most_memory=500_000_000, files=100)}
    outcome = Outcome(1, Latencies(), Latencies(), gauges, Connections("", now=50), {"service": 10})
    outcome.tenant.taken["submit"] = [0.1] * 900 + [0.9] * 99 + [35.0]
    outcome.tenant.failures["submit: 503"] = 2
    outcome.broken.append("a counter is wrong")
    missed = " ".join(outcome.misses())
    assert not outcome.is_back
    assert "900 ms at p99" in missed
    assert "35000 ms at most" in missed
    assert "500 MB" in missed
    assert "2 × submit: 503" in missed
    assert "a counter is wrong" in missed
    assert "did not return" in missed


def test_quantiles_are_measured_values() -> None:
    assert quantile([], 0.99) == 0
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile(list(map(float, range(1, 101))), 0.99) == 99
    assert rows_of(Latencies()) == {}


def test_requests_start_on_schedule_while_earlier_ones_are_unanswered() -> None:
    due: list[float] = []

    async def never_answers(at: float) -> None:
        due.append(at)
        await asyncio.Event().wait()

    async def until_some_are_due() -> None:
        calling = asyncio.create_task(every(0.01, never_answers))
        while len(due) < 5:
            await asyncio.sleep(0)
        calling.cancel()

    asyncio.run(until_some_are_due())
    assert [later - at for at, later in pairwise(due)] == pytest.approx([0.01] * (len(due) - 1))


def test_the_latency_of_a_request_counts_from_the_time_when_it_was_due() -> None:
    latencies = Latencies()
    with latencies.of("get", time.monotonic() - 35):
        pass
    assert latencies.taken["get"][0] >= 35


def test_a_peak_of_memory_between_two_samples_is_measured() -> None:
    """Uses a separate process, because this one may have used more memory before."""
    program = "x = bytearray(100_000_000); del x; print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        gauge = Gauge(process.pid)
        gauge.look()
        process.stdin.close()
    assert gauge.memory < 100_000_000 < gauge.most_memory


def test_every_abuser_has_its_own_name() -> None:
    assert len(ABUSERS) == len(set(ABUSERS.values()))
    assert all(kind.callers > 0 and kind.pause > 0 for kind in ABUSERS.values())
