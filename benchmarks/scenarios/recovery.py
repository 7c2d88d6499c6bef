"""How soon jobs run again after the database was killed and has come back."""

import time

from benchmarks.measure import Series
from benchmarks.plan import Run
from benchmarks.system import BATCHMILL, Deployment

CONCURRENCY = 10


def run(run: Run) -> list[Series]:
    delay = Series("recovery", "From the database's return to the next job", "s", False)
    down = run.pick(tiny=1, quick=15, full=60)
    jobs = run.pick(tiny=500, quick=3_000, full=3_000)
    postgres = run.servers.postgres

    def measure(deployment: Deployment) -> None:
        deployment.run("enqueue", jobs=jobs)
        with deployment.working(concurrency=CONCURRENCY, handler="sleep") as workers:
            workers.wait_until_ready()
            workers.wait_until_handled(CONCURRENCY)
            postgres.kill()
            time.sleep(down)
            before = workers.handled
            postgres.start()
            back = time.monotonic()
            delay.add(BATCHMILL.name, workers.wait_until_handled(before + 1) - back)

    for _ in range(run.repeats):
        run.once(BATCHMILL, measure)
    return [delay]
