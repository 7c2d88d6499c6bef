"""Demo: analyses the website of an invented bakery, in the terminal."""

import asyncio
import os
import sys
from collections.abc import Iterator
from uuid import UUID

from apps.sites.models import Fact
from apps.sites.report import Report
from apps.sites.samples import SampleSite
from batchmill import WorkerOptions
from batchmill.cli import follow_batch, note, out, table

PAGE = "http://127.0.0.1:8330/runs/"
ALLOWED = "SITES_ALLOWED"


def main() -> None:
    with SampleSite() as site:
        # The settings are read when the application is imported, here and in its child processes.
        os.environ[ALLOWED] = ",".join(filter(None, (os.environ.get(ALLOWED), site.host)))
        asyncio.run(analyse(site))


async def analyse(site: SampleSite) -> None:
    from apps.sites import runs
    from apps.sites.mill import mill, providers
    from apps.sites.stages import Order

    asked = ", ".join(each.name for each in providers) or "no model, because none is configured"
    note(f"Analysing the website of an invented bakery at {site.url}. Asks {asked}.")
    client = mill.as_tenant("default")
    async with mill.running(WorkerOptions(name="demo", processes=1, grace=5)):
        (id,) = await runs.begin(client, [Order(url=site.url)])
        await follow_batch(client.batch(id))
        run = await runs.get(client, id)
        if run["result"] is None:
            sys.exit(f"The run failed: {run['error']['message'] if run['error'] else 'cancelled'}")
        show(await runs.report_of(client, id), id)


def show(report: Report, id: UUID) -> None:
    website, analysis = report.website, report.model_analysis
    out().print()
    out().print(table("fact", "value", "found in", rows=fact_lines(report), title="What it says"))
    lines = [(each.weight, each.state, each.title, each.reason) for each in website.checks]
    out().print()
    out().print(table("weight", "state", "check", "reason", rows=lines, title="Checks"))
    out().print("\nQuestions")
    for prompt in report.prompts:
        out().print(f"  {prompt.text}")
    if analysis.score:
        out().print(f"\nScore {analysis.score.value:.4f}: how AI answers mention the business")
        for each in analysis.providers:
            score = f"{each.score.value:.4f}" if each.score else each.state
            out().print(f"  {each.provider} ({each.model}) {score}")
    else:
        out().print(f"\nModel analysis: {analysis.state}. Set SITES_PROVIDERS to ask models.")
    out().print(f"\nTo see it in a browser, run `make serve APP=sites PORT=8330`: {PAGE}{id}")


def fact_lines(report: Report) -> Iterator[tuple[str, str, str]]:
    site, facts = report.website.site, report.website.facts
    contact = facts.contact
    lines: dict[str, Fact | list[Fact] | None] = {
        "name": facts.business_name,
        "industry": facts.industry,
        "location": facts.location,
        "description": facts.description,
        "keywords": facts.keywords,
        "opening hours": facts.opening_hours,
        "address": contact.address,
        "telephone": contact.phones,
        "e-mail": contact.emails,
    }
    for name, found in lines.items():
        for fact in found if isinstance(found, list) else [found] if found else []:
            yield name, fact.value, f"{fact.method} of {fact.page.removeprefix(site)}"


if __name__ == "__main__":
    main()
