"""The outcome as Markdown, and the progress lines in the terminal."""

import json
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import commit, machine
from benchmarks.soak.outcome import MEGABYTE, Outcome, rows_of


def progress(outcome: Outcome) -> str:
    """The line that is printed every minute."""
    servers = ", ".join(
        f"{name} {gauge.memory / MEGABYTE:.0f} MB (most {gauge.most_memory / MEGABYTE:.0f}), "
        f"{gauge.files} files"
        for name, gauge in outcome.gauges.items()
        if name in outcome.files_before
    )
    failures = outcome.tenant.failures.total() + outcome.visitor.failures.total()
    return (
        f"{outcome.seconds / 60:5.1f} min: tenant p99 {outcome.p99 * 1e3:.0f} ms, most "
        f"{outcome.longest * 1e3:.0f} ms; visitor p99 {outcome.visitor_p99 * 1e3:.0f} ms, most "
        f"{outcome.visitor_longest * 1e3:.0f} ms; {failures} failures; {servers}; "
        f"{outcome.connections.now} connections"
    )


def markdown(outcome: Outcome) -> str:
    missed = outcome.misses()
    lines = [
        "# Soak",
        "",
        where(),
        "",
        f"{outcome.seconds / 60:.1f} minutes of abuse, with a normal tenant and a normal visitor. "
        + ("All goals are met." if not missed else "Goals that are missed:"),
        "",
        *(f"- {miss}" for miss in missed),
        *([""] if missed else []),
        f"Plain requests of the tenant, p99: {outcome.p99_alone * 1e3:.0f} ms before the abuse "
        f"began, {outcome.p99 * 1e3:.0f} ms during the abuse; the longest took "
        f"{outcome.longest * 1e3:.0f} ms.",
        "",
        *latency_table(outcome),
        "",
        *process_table(outcome),
        "",
        f"Connections to the database: {outcome.connections.most} at most, "
        f"{outcome.connections.idle} of them idle in a transaction for over 2 seconds.",
        "",
        *abuser_table(outcome),
    ]
    return "\n".join(lines) + "\n"


def where() -> str:
    here = machine()
    return (
        f"A run of {datetime.now(UTC):%Y-%m-%d} at commit {commit()}, on {here['cores']} cores of "
        f"{here['processor']} with {here['memory']}: all servers, abusers and callers."
    )


def latency_table(outcome: Outcome) -> list[str]:
    lines = [
        "| who | operation | requests | p50 ms | p95 ms | p99 ms | max ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for who, latencies in (("tenant", outcome.tenant), ("visitor", outcome.visitor)):
        for operation, row in rows_of(latencies).items():
            figures = " | ".join(f"{value:,.0f}" for value in row.values())
            lines.append(f"| {who} | {operation} | {figures} |")
    return lines


def process_table(outcome: Outcome) -> list[str]:
    return [
        "| process | memory at most | at the end | file handles at most | at the end | processor |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {gauge.most_memory / MEGABYTE:.0f} MB | {gauge.memory / MEGABYTE:.0f} MB "
            f"| {gauge.most_files} | {gauge.files} "
            f"| {gauge.processor / max(outcome.seconds, 1):.0%} of a core |"
            for name, gauge in outcome.gauges.items()
        ),
    ]


def abuser_table(outcome: Outcome) -> list[str]:
    return [
        "| abuser | what the server answered |",
        "|---|---|",
        *(
            f"| {name} | {', '.join(f'{count:,} × {what}' for what, count in answers.items())} |"
            for name, answers in outcome.answers.items()
        ),
    ]


def write(outcome: Outcome, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(markdown(outcome))
    (folder / "results.json").write_text(
        json.dumps(outcome.data() | {"where": where()}, indent=2) + "\n"
    )
