"""Results for people and programs: tables in Markdown, a plot for each series, and JSON."""

import json
import os
import platform
import re
import subprocess
from datetime import datetime
from pathlib import Path

import psycopg

from benchmarks import plot
from benchmarks.measure import Series
from benchmarks.servers import SETTINGS, Servers

Found = dict[str, list[Series]]


def write(folder: Path, found: Found, *, began: datetime, is_full: bool, servers: Servers) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "began": began.isoformat(timespec="minutes"),
        "commit": commit(),
        "run": "full" if is_full else "quick",
        "machine": machine(),
        "postgres": postgres_version(servers),
        "settings": SETTINGS,
    }
    data = about | {"scenarios": {name: [as_json(s) for s in all_] for name, all_ in found.items()}}
    (folder / "results.json").write_text(json.dumps(data, indent=1) + "\n")
    for all_ in found.values():
        for series in all_:
            (folder / f"{slug(series)}.svg").write_text(plot.bars(series))
    (folder / "README.md").write_text(page(about, found))


def page(about: dict[str, object], found: Found) -> str:
    machine, run = about["machine"], about["run"]
    lines = [
        "# Results",
        "",
        f"A {run} run of {about['began']} at commit {about['commit']}: {machine}, "
        f"PostgreSQL {about['postgres']}. Median of the repeats, and in brackets the least and the "
        "most of them. Systems took turns, so what disturbed the machine hit all alike.",
    ]
    for name, all_ in found.items():
        lines += ["", f"## {name.capitalize()}"]
        for series in all_:
            lines += ["", f"![{series.title}]({slug(series)}.svg)", "", *table(series)]
    return "\n".join(lines) + "\n"


def table(series: Series) -> list[str]:
    lines = [f"| {series.title} | {series.unit} | |", "|---|---:|---|"]
    for name in series.ranked:
        samples = series.samples[name]
        spread = f"({number(min(samples))}–{number(max(samples))})" if len(samples) > 1 else ""
        lines.append(f"| {name} | {number(series.median(name))} | {spread} |")
    return lines


def text_of(series: Series) -> str:
    best = ", ".join(f"{name} {number(series.median(name))}" for name in series.ranked)
    return f"  {series.title} ({series.unit}): {best}"


def as_json(series: Series) -> dict[str, object]:
    return {"title": series.title, "unit": series.unit, "samples": series.samples}


def slug(series: Series) -> str:
    return re.sub(r"[^a-z0-9]+", "-", series.title.lower()).strip("-")


def number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def machine() -> str:
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = os.cpu_count()
    name = model[1] if model else platform.machine()
    return f"{cores} cores of {name}, {memory:.0f} GiB, Python {platform.python_version()}"


def commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def postgres_version(servers: Servers) -> str:
    with psycopg.connect(servers.postgres.dsn) as conn:
        return str(conn.info.server_version // 10_000)
