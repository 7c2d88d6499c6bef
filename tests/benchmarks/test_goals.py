"""Whether a goal is reached is said of what was measured, and of nothing else."""

from benchmarks.goals import judged
from benchmarks.measure import Series


def series(name: str, more_is_better: bool = True, **samples: list[float]) -> dict[str, Series]:
    return {name: Series(name, name, "", more_is_better, samples=samples)}


def verdicts(measured: dict[str, Series]) -> dict[str, tuple[float, bool]]:
    return {v.text: (round(v.measured, 2), v.is_reached) for v in judged(measured)}


def test_nothing_measured_nothing_judged() -> None:
    assert verdicts({}) == {}


def test_systems_are_compared_with_what_stood_beside_them() -> None:
    drain = series("drain-one", batchmill=[10, 30, 12], raw=[20, 10, 10], pgqueuer=[2, 10, 3])
    assert verdicts(drain) == {
        "Drain, over pgqueuer": (4, True),
        "Drain, over the raw loop": (1.2, True),
    }


def test_the_raw_loop_is_no_peer() -> None:
    assert verdicts(series("enqueue-bulk", batchmill=[20], raw=[100])) == {}
    peers = series("enqueue-bulk", batchmill=[20], raw=[100], celery=[5], dbos=[10])
    assert verdicts(peers) == {"Bulk enqueue, over the best peer": (2, False)}


def test_of_times_the_best_is_the_shortest() -> None:
    pickup = series("pickup-idle-p50", False, batchmill=[2], dbos=[9], chancy=[4])
    assert verdicts(pickup) == {"Idle pickup p50, over the best peer": (0.5, True)}


def test_what_grows_or_lasts_has_a_bound_of_its_own() -> None:
    growth = series("growth", False, **{"claim by waiting jobs": [1.6]})
    held = series("snapshot-steady", before=[1_000], during=[990])
    assert verdicts(growth | held) == {
        "Claim p95 by waiting jobs": (1.6, False),
        "1,000 jobs/s with a snapshot held, over before": (0.99, True),
    }
