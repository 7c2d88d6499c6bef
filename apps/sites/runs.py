"""Runs: begun, listed, repeated, and what is known of each."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid5

from apps.sites.crawl.normalise import normalise
from apps.sites.mill import fetcher, pace, settings
from apps.sites.prompts import GivenPrompt
from apps.sites.report import Report
from apps.sites.stages import Order
from apps.sites.tables import SITES
from apps.sites.tasks import analyse_website
from batchmill import BatchState, Client, Conflict, Item, NotFound

LABELS = {"application": "sites"}
NAMESPACE = UUID("3f0c2a1e-6a4b-5b8e-9d61-0c7f5e2b7a10")


def address_of(given: str) -> str:
    """An address without a scheme, as people write it, means https."""
    text = given.strip()
    return text if "://" in text else f"https://{text}"


def site_of(url: str) -> str:
    """The host that runs are compared by, in one spelling. The fetcher has checked the address."""
    return urlsplit(normalise(url) or url).netloc.lower().removeprefix("www.")


async def begin(
    client: Client,
    orders: Sequence[Order],
    *,
    key: str | None = None,
    repeats: UUID | None = None,
) -> list[UUID]:
    """Submits one run for each order, all or none. Addresses that may not be reached are refused
    at once; the crawler checks them again. A repeated `key` gives the same runs, and is refused
    unless all orders are the same."""
    await fetcher.check(*(order.url for order in orders), caller=client.tenant)
    ids, digest = list[UUID](), digest_of(orders)
    async with client.transaction(idempotency_key=key) as conn:
        for number, order in enumerate(orders):
            options: Any = (
                {"idempotency_key": str(uuid5(NAMESPACE, f"{key} {number}"))} if key else {}
            )
            batch = await client.submit(
                analyse_website,
                [Item(order, digest=digest)],
                connection=conn,
                labels=LABELS,
                delay=pace.delay,
                expires_in=timedelta(days=settings.keep_days),
                **options,
            )
            await SITES.rows(
                conn,
                "add_run",
                id=batch.id,
                tenant=client.tenant,
                url=order.url,
                site=site_of(order.url),
                repeats=repeats,
            )
            ids.append(batch.id)
    return ids


def digest_of(orders: Sequence[Order]) -> str:
    """Each run is compared by the whole request that it was begun with, not by its order alone."""
    written = "\n".join(order.model_dump_json() for order in orders)
    return hashlib.sha256(written.encode()).hexdigest()


async def runs_of(
    client: Client,
    *,
    ids: Sequence[UUID] | None = None,
    site: str | None = None,
    states: Sequence[BatchState] | None = None,
    before: tuple[datetime, UUID] | None = None,
    count: int = 50,
) -> list[dict[str, Any]]:
    """Rows of the newest runs that match, each with the state of its batch and its job."""
    created_at, before_id = before or (None, None)
    return await SITES.rows(
        client,
        "list_runs",
        ids=None if ids is None else [*ids],
        site=site,
        states=None if states is None else [state.value for state in states],
        before=created_at,
        before_id=before_id,
        count=count,
    )


async def get(client: Client, id: UUID) -> dict[str, Any]:
    found = await runs_of(client, ids=[id])
    if not found:
        raise NotFound(f"There is no run {id}.")
    return found[0]


async def report_of(client: Client, id: UUID) -> Report:
    return Report.model_validate_json(
        await client.artifacts.read(report_file(await get(client, id)))
    )


def report_file(run: dict[str, Any]) -> UUID:
    if run["result"] is None:
        raise NotFound(f"The run {run['id']} has no report.")
    return UUID(run["result"]["report"]["artifact"])


async def prompts_of(client: Client, id: UUID) -> list[GivenPrompt]:
    """The prompts of a run, to be asked again."""
    report = await report_of(client, id)
    return [GivenPrompt(id=each.id, text=each.text) for each in report.prompts]


async def repeated(
    client: Client, id: UUID, prompts: list[GivenPrompt] | None, *, asks: bool = True
) -> UUID:
    """Analyses the same address again, with the same prompts or with edited ones."""
    run = await get(client, id)
    asked = await prompts_of(client, id) if prompts is None else prompts
    order = Order(url=run["url"], prompts=asked, asks=asks)
    (repeat,) = await begin(client, [order], repeats=id)
    return repeat


async def retry(client: Client, id: UUID) -> None:
    """Continues a failed run with the phase that failed."""
    if (await get(client, id))["batch_state"] != BatchState.FAILED:
        raise Conflict(f"The run {id} has not failed, so there is nothing to retry.")
    await client.batch(id).retry()


async def delete(client: Client, id: UUID) -> None:
    """Deletes an ended run with its files."""
    run = await get(client, id)
    if run["finished_at"] is None:
        raise Conflict(f"The run {id} has not ended. Cancel it first.")
    await client.batch(id).delete()
    await SITES.rows(client, "delete_run", id=id)
