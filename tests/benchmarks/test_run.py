"""A tiny run of every scenario shows that the benchmarks work. Its speeds mean nothing.

This is one test, because several would make each worker of xdist start a run.
"""

import json
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.run import SCENARIOS

ROOT = Path(__file__).parents[2]
SYSTEMS = ("batchmill", "raw")
COMPARED = ("enqueue-bulk", "drain-one", "drain-two", "limited-one", "limited-many")

Samples = dict[str, dict[str, list[float]]]


@pytest.mark.timeout(900)
def test_a_tiny_run_measures_every_scenario_and_writes_the_results(tmp_path: Path) -> None:
    results = results_of_a_run(tmp_path)
    assert results["failures"] == []
    assert list(results["scenarios"]) == SCENARIOS
    every = [series for all_ in results["scenarios"].values() for series in all_]
    samples = {series["name"]: series["samples"] for series in every}
    assert all(samples.values())
    check_figures_are_plausible(samples)
    check_machine_commit_and_versions_are_named(results)
    check_only_measured_goals_are_judged(results)
    check_tables_and_plots_are_written(tmp_path, samples)


def results_of_a_run(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.run", "--tiny", "--systems", *SYSTEMS]
    done = subprocess.run(
        [*command, "--results", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "results.json").read_text())


def check_figures_are_plausible(samples: Samples) -> None:
    for name in COMPARED:
        assert set(samples[name]) == set(SYSTEMS)
        assert all(1 < speed < 10_000_000 for speeds in samples[name].values() for speed in speeds)
    assert list(samples["single-latency"])[:2] == [
        "batchmill: single job",
        "batchmill: batch of one",
    ]
    assert all(0.1 < ratio < 100 for (ratio,) in samples["single-ratio"].values())
    assert list(samples["snapshot-steady"]) == ["before", "during", "after"]
    assert list(samples["claim-by-waiting-jobs-p95"]) == ["100", "200"]


def check_machine_commit_and_versions_are_named(results: dict[str, Any]) -> None:
    assert results["run"] == "tiny"
    assert results["machine"].keys() == {"processor", "cores", "memory", "system"}
    assert results["commit"] and results["began"]
    assert {"python", "postgres", "batchmill"} <= results["versions"].keys()


def check_only_measured_goals_are_judged(results: dict[str, Any]) -> None:
    judged = {goal["goal"] for goal in results["goals"]}
    assert {"Drain, over the raw loop", "import batchmill", "Claim p95 by open batches"} <= judged
    assert "Drain, over pgqueuer" not in judged


def check_tables_and_plots_are_written(folder: Path, samples: Samples) -> None:
    page = (folder / "README.md").read_text()
    assert "## Goals" in page and "## What failed" not in page
    for name, rows in samples.items():
        assert f"({name}.svg)" in page
        plot = (folder / f"{name}.svg").read_text()
        ElementTree.fromstring(plot)
        assert "prefers-color-scheme: dark" in plot
        assert all(escape(row) in plot for row in rows)
