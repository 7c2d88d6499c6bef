"""Runs: begin, list, follow, cancel, retry, repeat, and their reports."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from apps.sites import runs
from apps.sites.answers import BusinessNames
from apps.sites.phases import Status
from apps.sites.printing import report_pdf
from apps.sites.prompts import GivenPrompt, edited_prompts
from apps.sites.report import compare
from apps.sites.routes.bodies import NewRuns, RepeatedRun
from apps.sites.routes.cursor import Before, place_after
from apps.sites.stages import Order
from apps.sites.stream import shown
from apps.sites.views import run_view, states_with, status_of
from batchmill import BatchState, Client, Feed
from batchmill.service import (
    BadRequest,
    ByKeyOrLink,
    EventStreams,
    GuardedRoute,
    IdempotencyKey,
    LastEventId,
    Reader,
    Submitter,
    send_file,
)

router = APIRouter(route_class=GuardedRoute)
RUN = "/runs/{id}"

Count = Annotated[int, Query(ge=1, le=200)]


@router.post("/runs", status_code=202)
async def begin_runs(
    caller: Submitter, body: NewRuns, idempotency_key: IdempotencyKey = None
) -> dict[str, Any]:
    """One run for each address. An address that is given twice has one run."""
    check_prompts(body.prompts)
    addresses = dict.fromkeys(runs.address_of(url) for url in body.urls)
    orders = [Order(url=url, prompts=body.prompts, asks=body.ask) for url in addresses]
    ids = await runs.begin(caller.client, orders, key=idempotency_key)
    found = {row["id"]: row for row in await runs.runs_of(caller.client, ids=ids, count=len(ids))}
    return {"runs": [run_view(found[id]) for id in ids]}


def check_prompts(given: list[GivenPrompt] | None) -> None:
    """Refuses at once what the phase would refuse later."""
    if given is not None:
        edited_prompts(given, BusinessNames())


@router.get("/runs")
async def list_runs(
    caller: Reader,
    before: Before,
    status: Status | None = None,
    site: str | None = None,
    count: Count = 50,
) -> dict[str, Any]:
    """`lastEventId` is read first: later events may already be in the list, and change nothing."""
    position = await feed_of(caller.client).position()
    states = None if status is None else states_with(status)
    rows = await runs.runs_of(
        caller.client, site=site, states=states, before=before, count=count + 1
    )
    page = [row for row in rows[:count] if status is None or status_of(row) == status]
    return {
        "runs": [run_view(row) for row in page],
        "next": place_after(rows, count),
        "lastEventId": position,
    }


def feed_of(client: Client) -> Feed:
    (label,) = runs.LABELS.items()
    return client.feed(*label)


@router.get("/stream")
async def follow_runs(streams: EventStreams, caller: Reader, after: LastEventId) -> Response:
    return await streams.follow(caller, feed_of(caller.client), after, show=shown)


@router.get(RUN)
async def get_run(caller: Reader, id: UUID) -> dict[str, Any]:
    run = await runs.get(caller.client, id)
    usage = await caller.client.batch(id).usage()
    earlier = await runs.runs_of(
        caller.client, site=run["site"], states=[BatchState.COMPLETED], count=20
    )
    return {
        **run_view(run),
        "usage": {name: float(amount) for name, amount in usage.items()},
        "otherRuns": [run_view(each) for each in earlier if each["id"] != id],
    }


@router.get(RUN + "/stream")
async def follow_run(
    streams: EventStreams, viewer: ByKeyOrLink, id: UUID, after: LastEventId
) -> Response:
    await runs.get(viewer.client, id)
    return await streams.follow(viewer, id, after, show=shown)


@router.get(RUN + "/report")
async def get_report(request: Request, viewer: ByKeyOrLink, id: UUID) -> Response:
    file = runs.report_file(await runs.get(viewer.client, id))
    return await send_file(request, viewer, file)


@router.get(RUN + "/report.pdf")
async def get_report_pdf(request: Request, viewer: ByKeyOrLink, id: UUID) -> Response:
    file = await report_pdf(viewer.client, await runs.get(viewer.client, id))
    return await send_file(request, viewer, file)


@router.get(RUN + "/compare")
async def compare_runs(
    caller: Reader, id: UUID, other: Annotated[UUID, Query(alias="with")]
) -> dict[str, Any]:
    """What has changed since the run `with`."""
    run, earlier = await runs.get(caller.client, id), await runs.get(caller.client, other)
    if run["site"] != earlier["site"]:
        raise BadRequest("Both runs must be of the same site.")
    before, after = (
        await runs.report_of(caller.client, other),
        await runs.report_of(caller.client, id),
    )
    return {
        "before": run_view(earlier),
        "after": run_view(run),
        **compare(before, after).model_dump(by_alias=True),
    }


@router.post(RUN + "/cancel")
async def cancel_run(caller: Submitter, id: UUID) -> dict[str, Any]:
    await runs.get(caller.client, id)
    await caller.client.batch(id).cancel()
    return run_view(await runs.get(caller.client, id))


@router.post(RUN + "/retry", status_code=202)
async def retry_run(caller: Submitter, id: UUID) -> dict[str, Any]:
    """Continues a failed run with the phase that failed."""
    await runs.retry(caller.client, id)
    return run_view(await runs.get(caller.client, id))


@router.post(RUN + "/repeat", status_code=202)
async def repeat_run(caller: Submitter, id: UUID, body: RepeatedRun) -> dict[str, Any]:
    """A new run of the same address, with the same prompts or with edited ones."""
    check_prompts(body.prompts)
    new = await runs.repeated(caller.client, id, body.prompts, asks=body.ask)
    return run_view(await runs.get(caller.client, new))


@router.delete(RUN, status_code=204)
async def delete_run(caller: Submitter, id: UUID) -> None:
    await runs.delete(caller.client, id)
