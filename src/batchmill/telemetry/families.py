"""The metrics in Prometheus' format. Needs prometheus-client, so only a scrape imports this."""

from collections.abc import Iterator
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from batchmill.store.overview import CAP, MOST_LIMITS, Gauges
from batchmill.telemetry.meter import Meter

STATES = ("ready", "scheduled", "running")


def exposition(meter: Meter, gauges: Gauges | None) -> bytes:
    """Omits the gauges if the database did not answer."""
    return generate_latest(Scrape(meter, gauges))


class Scrape:
    """A collector of the values at one moment."""

    def __init__(self, meter: Meter, gauges: Gauges | None):
        self._meter = meter
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        is_up = self._gauges is not None
        yield _gauge("up", "1 if the database answered this scrape in time, otherwise 0.", is_up)
        if self._gauges is not None:
            yield from _tasks(self._gauges.tasks)
            yield from _limits(self._gauges)
            yield from _open(self._gauges)
        if self._meter.stream_clients is not None:
            clients = self._meter.stream_clients()
            yield _gauge("stream_clients", "Clients that follow a batch in this process.", clients)
        yield from _attempts(self._meter)
        yield from _calls(self._meter)


def _tasks(tasks: list[dict[str, Any]]) -> Iterator[Metric]:
    jobs = GaugeMetricFamily(
        "batchmill_jobs",
        f"Live jobs by task and state. Waiting jobs are counted up to {CAP}: this value means "
        "that many or more.",
        labels=("task", "state"),
    )
    oldest = GaugeMetricFamily(
        "batchmill_oldest_ready_seconds",
        "Seconds since the oldest ready job of a task became due; 0 if none is ready.",
        labels=("task",),
    )
    workers = GaugeMetricFamily(
        "batchmill_task_workers", "Live workers that run the task.", labels=("task",)
    )
    for task in tasks:
        for state in STATES:
            jobs.add_metric((task["name"], state), task[state])
        oldest.add_metric((task["name"],), task["oldest_ready_seconds"] or 0.0)
        workers.add_metric((task["name"],), task["workers"])
    yield from (jobs, oldest, workers)


def _limits(gauges: Gauges) -> Iterator[Metric]:
    which = f"for limits of the system, of tasks and of providers, at most {MOST_LIMITS}"
    running = GaugeMetricFamily(
        "batchmill_limit_running",
        f"Running jobs that count against a limit, {which}.",
        labels=("name",),
    )
    slots = GaugeMetricFamily(
        "batchmill_limit_slots", f"Slots of a limit, {which}.", labels=("name",)
    )
    paused = GaugeMetricFamily(
        "batchmill_limit_paused", f"1 if a limit is paused, otherwise 0, {which}.", labels=("name",)
    )
    for limit in gauges.limits:
        running.add_metric((limit.name,), limit.running)
        paused.add_metric((limit.name,), limit.paused)
        if limit.slots is not None:
            slots.add_metric((limit.name,), limit.slots)
    yield from (running, slots, paused)


def _open(gauges: Gauges) -> Iterator[Metric]:
    yield _gauge("workers", "Live workers.", gauges.workers)
    yield _gauge(
        "open_batches", f"Batches that have not finished, counted up to {CAP}.", gauges.batches
    )


def _attempts(meter: Meter) -> Iterator[Metric]:
    attempts = CounterMetricFamily(
        "batchmill_attempts_total",
        "Attempts that ended in this process, by outcome.",
        labels=("task", "outcome"),
    )
    expiries = CounterMetricFamily(
        "batchmill_lease_expiries_total",
        "Attempts of lost workers, whose lease expired, that this process ended.",
        labels=("task",),
    )
    usage = CounterMetricFamily(
        "batchmill_usage_total",
        "Amounts that handlers recorded in attempts that ended in this process, by name.",
        labels=("task", "name"),
    )
    waits = HistogramMetricFamily(
        "batchmill_job_wait_seconds",
        "Seconds from when a job is due to its start in this process.",
        labels=("task",),
    )
    runs = HistogramMetricFamily(
        "batchmill_job_run_seconds",
        "Seconds from the start of the handler to the end of the attempt, in this process.",
        labels=("task",),
    )
    for name, task in sorted(meter.tasks.items()):
        for outcome, count in sorted(task.outcomes.items()):
            attempts.add_metric((name, outcome), count)
        expiries.add_metric((name,), task.lease_expiries)
        for used, amount in sorted(task.usage.items()):
            usage.add_metric((name, used), amount)
        waits.add_metric((name,), *task.waits.read())
        runs.add_metric((name,), *task.runs.read())
    yield from (attempts, expiries, usage, waits, runs)


def _calls(meter: Meter) -> Iterator[Metric]:
    buckets, total = meter.calls.read()
    yield HistogramMetricFamily(
        "batchmill_exchange_seconds",
        "Seconds of the calls that record outcomes and claim jobs.",
        buckets=buckets,
        sum_value=total,
    )
    yield CounterMetricFamily(
        "batchmill_exchange_failures_total",
        "Calls that record outcomes and claim jobs and that failed; their outcomes are sent again.",
        value=meter.failed_calls,
    )


def _gauge(name: str, description: str, value: Any) -> Metric:
    return GaugeMetricFamily(f"batchmill_{name}", description, value=value)
