"""The latency of submitting one job: without a batch, and as a batch of one.

Both take turns, call by call: on a connection of the mill, on one of the caller with its commit,
and as a tenant. No peer has batches, so only commits of batchmill are compared.
"""

from benchmarks.measure import Series, percentile
from benchmarks.plan import Run
from benchmarks.system import ALTERNATING, Deployment

WAYS = {"mill": "", "connection": " on the caller's connection", "tenant": " as a tenant"}
KINDS = {"job": "single job", "batch": "batch of one"}


def run(run: Run) -> list[Series]:
    latency = Series(
        "single-latency", "Submitting one job, p50", "ms", more_is_better=False, is_ranked=False
    )
    ratio = Series("single-ratio", "A batch of one over a single job", "×", False, is_ranked=False)
    rounds = run.pick(tiny=20, quick=1_000, full=3_000)

    def measure(deployment: Deployment) -> None:
        taken = deployment.run_program(ALTERNATING, rounds=rounds)
        for way, suffix in WAYS.items():
            p50 = {kind: percentile(taken[way][kind], 50) * 1e3 for kind in KINDS}
            for kind, name in KINDS.items():
                latency.add(f"{deployment.system.name}: {name}{suffix}", p50[kind])
            ratio.add(f"{deployment.system.name}{suffix}", p50["batch"] / p50["job"])

    run.take_turns([system for system in run.own_systems if system.name != "raw"], measure)
    return [latency, ratio]
