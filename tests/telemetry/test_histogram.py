from hypothesis import given
from hypothesis import strategies as st

from batchmill.telemetry import histogram
from batchmill.telemetry.histogram import Histogram

BOUNDS = (0.1, 1.0, 10.0)


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.5, 10.0, 11.0])), st.integers(1, 5))
def test_every_bucket_counts_the_values_up_to_its_bound(values: list[float], block: int) -> None:
    before, histogram.BLOCK = histogram.BLOCK, block
    try:
        counted = Histogram(BOUNDS)
        for value in values:
            counted.add(value)
        buckets, total = counted.read()
    finally:
        histogram.BLOCK = before
    expected = [(str(bound), sum(value <= bound for value in values)) for bound in BOUNDS]
    assert buckets == [*expected, ("+Inf", len(values))]
    assert abs(total - sum(values)) < 1e-6


def test_reading_a_histogram_twice_returns_the_same() -> None:
    counted = Histogram(BOUNDS)
    counted.add(0.5)
    assert counted.read() == counted.read()
