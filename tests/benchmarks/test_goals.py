"""Goals are judged only by figures that were measured."""

from benchmarks.goals import judged
from benchmarks.measure import Series


def series(name: str, more_is_better: bool = True, **samples: list[float]) -> dict[str, Series]:
    return {name: Series(name, name, "", more_is_better, samples=samples)}


def verdicts(measured: dict[str, Series]) -> dict[str, tuple[float, bool]]:
    return {v.text: (round(v.measured, 2), v.is_reached) for v in judged(measured)}


def test_goals_without_measurements_are_not_judged() -> None:
    assert verdicts({}) == {}


def test_batchmill_is_compared_with_the_other_systems_round_by_round() -> None:
    drain = series("drain-one", batchmill=[10, 30, 12], raw=[20, 10, 10], pgqueuer=[2, 10, 3])
    assert verdicts(drain) == {
        "Drain, over pgqueuer": (4, True),
        "Drain, over the raw loop": (1.2, True),
    }


def test_the_raw_loop_does_not_count_as_a_peer() -> None:
    assert verdicts(series("enqueue-bulk", batchmill=[20], raw=[100])) == {}
    peers = series("enqueue-bulk", batchmill=[20], raw=[100], celery=[5], dbos=[10])
    assert verdicts(peers) == {"Bulk enqueue, over the best peer": (2, False)}


def test_the_best_peer_is_the_one_with_the_shortest_time() -> None:
    pickup = series("pickup-idle-p50", False, batchmill=[2], dbos=[9], chancy=[4])
    assert verdicts(pickup) == {"Idle pickup p50, over the best peer": (0.5, True)}


def test_growth_and_steady_load_have_separate_bounds() -> None:
    growth = series("growth", False, **{"claim by waiting jobs": [1.6]})
    steady = series("snapshot-steady", before=[1_000], during=[990])
    assert verdicts(growth | steady) == {
        "Claim p95 by waiting jobs": (1.6, False),
        "1,000 jobs/s with a snapshot held, over before": (0.99, True),
    }
