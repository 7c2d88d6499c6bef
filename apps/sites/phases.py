"""The phases of a run, in their order. A phase is a stage of its job, and a pool of processors."""

from typing import Literal

Phase = Literal["website-analysis", "prompt-forming", "model-analysis"]
Status = Literal[
    "not-started",
    "website-analysis",
    "prompt-forming",
    "model-analysis",
    "completed",
    "failed",
    "cancelled",
]

PHASES: tuple[Phase, ...] = ("website-analysis", "prompt-forming", "model-analysis")
PREFIX = "sites."

# What a phase adds to the progress of a run, in percent.
SHARES: dict[Phase, tuple[float, float]] = {
    "website-analysis": (0, 50),
    "prompt-forming": (50, 55),
    "model-analysis": (55, 100),
}


def task_of(phase: Phase) -> str:
    return f"{PREFIX}{phase}"


def phase_of(task: str) -> str:
    return task.removeprefix(PREFIX)


def progress_in(phase: Phase, done: int, total: int) -> float:
    """The progress of a run that has done a part of a phase."""
    first, last = SHARES[phase]
    part = min(done / total, 1.0) if total else 0.0
    return round(first + part * (last - first), 1)
