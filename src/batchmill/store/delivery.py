"""How a worker gets jobs from Postgres and hands back how they ended."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic_core import to_json

from batchmill.domain.job import Claim, Progress
from batchmill.domain.outcome import Outcome
from batchmill.store.database import Database
from batchmill.store.line import Line


class PostgresDelivery:
    """The delivery that a worker uses by default; see `batchmill.worker.delivery.Delivery`."""

    def __init__(self, database: Database, *, patience: float = 15):
        self._database = database
        # One line for both: a claim and a completion of one worker mostly want the same lanes.
        self._line = Line(database, patience)
        self._since = "0"

    async def claim(
        self, worker: int, wants: Mapping[str, int], want: int, spare: int
    ) -> tuple[list[Claim], float | None]:
        answer = await self._line.value(
            "claim",
            worker=worker,
            tasks=list(wants),
            wants=list(wants.values()),
            want=want,
            spare=spare,
            since=self._since,
        )
        self._since = answer["since"]
        return claims(answer), answer["wait"]

    async def finish(self, outcomes: Collection[Outcome]) -> list[int]:
        return await self._line.value("finish", **finish_call(outcomes))

    async def report(self, reports: Iterable[tuple[Claim, Progress]]) -> list[int]:
        return await self._line.value(
            "report_progress",
            reports=to_json(
                [{"id": c.id, "fence": c.fence, "progress": p} for c, p in reports]
            ).decode(),
        )

    async def held(self, worker: int) -> list[Claim]:
        found = await self._database.rows("jobs_of_worker", worker=worker)
        return [Claim(**row) for row in found]

    async def close(self) -> None:
        await self._line.close()


def claims(answer: Mapping[str, Any]) -> list[Claim]:
    """The jobs come by columns, which costs Postgres and us the least."""
    return list(map(Claim._make, zip(*answer["jobs"], strict=True)))


def finish_call(outcomes: Collection[Outcome]) -> dict[str, Any]:
    """What the query `finish` takes."""
    return {
        "outcomes": f"[{','.join(map(_outcome_json, outcomes))}]",
        "lanes": list({outcome.claim.lane for outcome in outcomes}),
    }


def _outcome_json(outcome: Outcome) -> str:
    """Results and payloads are JSON already; they go in as they are."""
    text = f'"id":{outcome.claim.id},"fence":{outcome.claim.fence},"kind":"{outcome.kind}"'
    if outcome.result is not None:
        text += f',"result":{outcome.result}'
    if outcome.payload is not None:
        text += f',"payload":{outcome.payload}'
    for name in ("error", "delay", "task", "key", "progress"):
        if (value := getattr(outcome, name)) is not None:
            text += f',"{name}":{to_json(value).decode()}'
    return f"{{{text}}}"
