"""How a worker gets jobs from Postgres and returns their outcomes."""

from collections.abc import Collection, Iterable, Mapping
from time import monotonic
from typing import Any

from pydantic_core import to_json

from batchmill.domain.demand import Delivered, Demand
from batchmill.domain.job import Claim, Progress
from batchmill.domain.outcome import Outcome
from batchmill.store.connection import DedicatedConnection
from batchmill.store.database import PooledDatabase

SCAN_SECONDS = 30.0


class PostgresDelivery:
    """The delivery that a worker uses by default; see `batchmill.worker.delivery.Delivery`."""

    def __init__(self, database: PooledDatabase, patience: float = 15):
        self._database = database
        # Shared, because claims and completions of one worker mostly lock the same lanes.
        self._connection = DedicatedConnection(database, patience)
        self._since = "0"
        self._scanned_at = monotonic()
        self._turns = Turns()

    async def exchange(self, outcomes: Collection[Outcome], demand: Demand | None) -> Delivered:
        if demand is None:
            finish = finish_call(outcomes)
            return Delivered(await self._connection.value(with_records("finish", finish), **finish))
        # If the connection breaks, the next one may reach a server that lost commits and issues
        # older transaction ids again. A pooler may hide that, so the position is reset before every
        # call.
        since, self._since = self._position(), "0"
        call = claim_call(demand, since, self._turns)
        if outcomes:
            finish = finish_call(outcomes)
            answer = await self._connection.value(
                with_records("finish_and_claim", finish), **finish, **call
            )
        else:
            answer = await self._connection.value("claim_jobs", **call)
        self._since = answer["since"]
        self._turns.learn(demand, answer)
        return Delivered(
            answer["refused"],
            claims(answer),
            answer["wait"],
            answer["passed_over"],
            answer["alone"],
        )

    def _position(self) -> str:
        """Where to start looking for submitted jobs; from time to time, the beginning."""
        if monotonic() - self._scanned_at < SCAN_SECONDS:
            return self._since
        self._scanned_at = monotonic()
        return "0"

    async def report(self, reports: Iterable[tuple[Claim, Progress]]) -> list[int]:
        return await self._connection.value("report_progress", **report_call(reports))

    async def held(self, worker: int) -> list[Claim]:
        found = await self._database.rows("jobs_of_worker", worker=worker)
        return [Claim(**row) for row in found]

    async def close(self) -> None:
        await self._connection.close()


class Turns:
    """Tenants take turns in each task. A claim continues after the last one's final tenant."""

    def __init__(self) -> None:
        self.claims = 0
        self.last_tenant = ""
        self.last_tenants: dict[str, str] = {}

    def learn(self, demand: Demand, answer: Mapping[str, Any]) -> None:
        self.claims += 1
        if answer["last_tenants"] is not None:
            self.last_tenant = answer["last_tenant"]
            self.last_tenants.update(zip(demand.wants, answer["last_tenants"], strict=True))


def claim_call(demand: Demand, since: str, turns: Turns) -> dict[str, Any]:
    """The parameters of the query `claim_jobs`. It looks for submitted jobs from `since` on."""
    return {
        "worker": demand.worker,
        "tasks": list(demand.wants),
        "wants": list(demand.wants.values()),
        "want": demand.want,
        "prefetch": demand.prefetch,
        "since": since,
        "last_tenants": [turns.last_tenants.get(task, "") for task in demand.wants],
        "last_tenant": turns.last_tenant,
        "seed": turns.claims,
    }


def claims(answer: Mapping[str, Any]) -> list[Claim]:
    """Jobs and lanes arrive as columns, which is cheapest for Postgres and for Python."""
    if answer["claimed"] is None:
        return []
    lanes, jobs = answer["claimed"]["lanes"], answer["claimed"]["jobs"]
    shared = {lane[0]: lane[1:] for lane in zip(*lanes, strict=True)}
    return [Claim._make(job + shared[job[2]]) for job in zip(*jobs, strict=True)]


def finish_call(outcomes: Collection[Outcome]) -> dict[str, Any]:
    """The parameters of the query `finish`, and `records` if there are any: see `with_records`.
    Postgres waits for them, so they are built in few steps: the driver would inspect each value of
    a list."""
    claims = [outcome.claim for outcome in outcomes]
    call = {
        "ids": array([claim.id for claim in claims]),
        "fences": array([claim.fence for claim in claims]),
        "kinds": f"{{{','.join([outcome.kind for outcome in outcomes])}}}",
        "details": f"[{','.join(map(_detail, outcomes))}]",
        "progress": _progress([outcome.progress for outcome in outcomes]),
        "lanes": array(list({claim.lane for claim in claims})),
    }
    if records := [outcome for outcome in outcomes if outcome.usage or outcome.released]:
        call["records"] = to_json([_record(outcome) for outcome in records]).decode()
    return call


def with_records(query: str, call: Mapping[str, Any]) -> str:
    """The variant of the query `finish` or `finish_and_claim` for this call. Blocks without records
    do not pay for them."""
    return f"{query}_with_records" if "records" in call else query


def array(numbers: list[int]) -> str:
    """Formats numbers as a Postgres array."""
    return f"{{{str(numbers)[1:-1]}}}"


def _detail(outcome: Outcome) -> str:
    """Results and payloads are already JSON and are inserted unchanged."""
    if outcome.kind == "completed":
        return outcome.result or "null"
    if outcome.kind == "advance":
        target = to_json({"task": outcome.task, "key": outcome.key}).decode()
        return f'{target[:-1]},"payload":{outcome.payload or "null"}}}'
    return to_json({"error": outcome.error, "delay": outcome.delay}).decode()


def _record(outcome: Outcome) -> dict[str, Any]:
    """What the attempt records besides its outcome."""
    return {
        "id": outcome.claim.id,
        "fence": outcome.claim.fence,
        "amounts": outcome.usage,
        "released": outcome.released,
    }


def _progress(reported: Collection[Progress | None]) -> str | None:
    return to_json(reported).decode() if any(reported) else None


def report_call(reports: Iterable[tuple[Claim, Progress]]) -> dict[str, Any]:
    """The parameters of the query `report_progress`."""
    rows = [{"id": c.id, "fence": c.fence, "progress": progress} for c, progress in reports]
    return {"reports": to_json(rows).decode()}
