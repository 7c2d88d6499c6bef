"""Writes the results: tables in Markdown, a plot for each series, and JSON."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import plot
from benchmarks.goals import Verdict, judged
from benchmarks.machine import about
from benchmarks.measure import Series
from benchmarks.plan import Run, Size

Results = dict[str, list[Series]]


def write(folder: Path, results: Results, run: Run, began: datetime) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    every = [series for all_ in results.values() for series in all_]
    verdicts = list(judged({series.name: series for series in every}))
    head = about(run, began)
    for series in every:
        (folder / f"{series.name}.svg").write_text(plot.bars(series))
    data = head | {
        "goals": [verdict_json(verdict) for verdict in verdicts],
        "failures": run.failures,
        "scenarios": {name: [series_json(s) for s in all_] for name, all_ in results.items()},
    }
    (folder / "results.json").write_text(json.dumps(data, indent=1) + "\n")
    lines = [*intro(head), *goals(verdicts), *failures(run.failures), *scenarios(results)]
    (folder / "README.md").write_text("\n".join(lines) + "\n")


def intro(head: dict[str, Any]) -> list[str]:
    machine, versions = head["machine"], head["versions"]
    caution = "A tiny run only shows that everything works. "
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    return [
        "# Results",
        "",
        f"A {head['run']} run of {head['began']} at commit {head['commit']}, on {machine['cores']} "
        f"cores of {machine['processor']} with {machine['memory']}: {named}.",
        "",
        (caution if head["run"] == Size.TINY else "")
        + "Figures are medians of the repeats, with the minimum and maximum in brackets. "
        "Systems took turns, so disturbances of the machine affected all of them.",
    ]


def goals(verdicts: list[Verdict]) -> list[str]:
    if not verdicts:
        return []
    lines = ["", "## Goals", "", "| goal | wanted | measured | reached |", "|---|---|---:|---|"]
    return lines + [
        f"| {v.text} | {v.bound} | {number(v.measured)} | {'yes' if v.is_reached else '**no**'} |"
        for v in verdicts
    ]


def failures(failed: list[str]) -> list[str]:
    return ["", "## What failed", "", *(f"- {text}" for text in failed)] if failed else []


def scenarios(results: Results) -> list[str]:
    lines = []
    for name, all_ in results.items():
        lines += ["", f"## {name.capitalize()}"]
        for series in all_:
            lines += ["", f"![{series.title}]({series.name}.svg)", "", *table(series)]
    return lines


def table(series: Series) -> list[str]:
    lines = [f"| {series.title} | {series.unit} | |", "|---|---:|---|"]
    for row in series.rows:
        samples = series.samples[row]
        spread = f"({number(min(samples))}–{number(max(samples))})" if len(samples) > 1 else ""
        lines.append(f"| {row} | {number(series.median(row))} | {spread} |")
    return lines


def text_of(series: Series) -> str:
    rows = ", ".join(f"{row} {number(series.median(row))}" for row in series.rows)
    return f"  {series.title} ({series.unit}): {rows}"


def series_json(series: Series) -> dict[str, object]:
    return {
        "name": series.name,
        "title": series.title,
        "unit": series.unit,
        "samples": series.samples,
    }


def verdict_json(verdict: Verdict) -> dict[str, object]:
    return {
        "goal": verdict.text,
        "wanted": str(verdict.bound),
        "measured": round(verdict.measured, 3),
        "reached": verdict.is_reached,
    }


def number(value: float) -> str:
    return f"{value:,.{plot.digits(value)}f}"
