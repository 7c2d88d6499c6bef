"""The phases of a run: website-analysis → prompt-forming → model-analysis."""

import asyncio

from apps.sites.answers import NOT_ASKED, analysis_of, names_of
from apps.sites.crawl import crawl
from apps.sites.mill import fetcher, mill, pace, providers, settings
from apps.sites.page import read_page
from apps.sites.phases import progress_in, task_of
from apps.sites.prompts import edited_prompts, prompts_of
from apps.sites.providers import ask_all
from apps.sites.report import Report, Website, website_of
from apps.sites.stages import AnalysedSite, FormedPrompts, Order, RunResult
from batchmill import Advance, Artifact, BadStatus, Job, Limits, Retry, Rule, SyncJob

RETRY = Retry(
    attempts=pace.attempts, base=settings.retry_seconds, factor=2, cap=300, max_retry_after=3_600
)
POOL = Limits(total=settings.pool, rate=pace.rate)
CRAWL_SECONDS = settings.crawl.seconds + 60
# Pages of strangers are read in it.
CRAWL_BYTES = 768 * 1_048_576
ASK_SECONDS = 3_600.0
JSON = "application/json"
# What a website may answer instead of its start page. The engine's own sentences name no website.
START_PAGE = (
    Rule(
        (404, 410),
        "not_found",
        False,
        "The website has no page at this address. Check the address.",
    ),
    Rule(
        (401, 403, 451),
        "not_allowed",
        False,
        "The website does not show this page to everybody. Use the address of a public page.",
    ),
    Rule(429, "rate_limited", True, "The website limits how often it is read."),
    Rule(
        lambda error: isinstance(error, BadStatus) and error.status >= 500,
        "unavailable",
        True,
        "The website answers with an error of its own. Try again later.",
    ),
)


@mill.task(
    name=task_of("website-analysis"),
    entry=True,
    process=True,
    priority=2,
    retry=RETRY,
    timeout=CRAWL_SECONDS,
    memory=CRAWL_BYTES,
    limits=POOL,
    rules=START_PAGE,
)
def analyse_website(job: SyncJob, order: Order) -> Advance:
    """Reads the website in a child process, because an untrusted page may crash it."""
    job.progress("website-analysis", f"Reading {order.url}", 0)

    def report(done: int, known: int) -> None:
        percent = progress_in("website-analysis", done, known)
        job.progress("website-analysis", f"Read {done} of {known} pages", percent)

    found = asyncio.run(
        crawl(
            order.url,
            fetcher,
            read=read_page,
            limits=settings.crawl,
            caller=job.tenant,
            report=report,
        )
    )
    website = website_of(found)
    text = website.model_dump_json(by_alias=True).encode()
    analysed = AnalysedSite(
        order=order,
        site=website.site,
        facts=website.facts,
        website=job.artifacts.save("website.json", text, media_type=JSON),
    )
    return Advance(task_of("prompt-forming"), analysed)


@mill.task(name=task_of("prompt-forming"), priority=1, retry=RETRY, timeout=60, limits=POOL)
async def form_prompts(job: Job, site: AnalysedSite) -> Advance:
    """Takes the prompts that were given, or forms them from the facts."""
    await job.progress("prompt-forming", "Forming the questions", 50)
    formed, given = prompts_of(site.facts, site.site), site.order.prompts
    prompts = edited_prompts(given, names_of(site.facts, site.site), formed) if given else formed
    return Advance(ask_models, FormedPrompts(site=site, prompts=prompts))


@mill.task(name=task_of("model-analysis"), retry=RETRY, timeout=ASK_SECONDS, limits=POOL)
async def ask_models(job: Job, formed: FormedPrompts) -> RunResult:
    site, asked = formed.site, providers if formed.site.order.asks else ()

    async def report(done: int, total: int) -> None:
        percent = progress_in("model-analysis", done, total)
        step = f"{done} of {total} answers" if total else "Writing the report"
        await job.progress("model-analysis", step, percent)

    await report(0, len(asked) * len(formed.prompts))
    answers = await ask_all(job, asked, formed.prompts, report, attempts=RETRY.attempts)
    names = names_of(site.facts, site.site)
    analysis = await asyncio.to_thread(analysis_of, answers, formed.prompts, names)
    if not site.order.asks:
        analysis = analysis.model_copy(update={"state": NOT_ASKED})
    website = Website.model_validate_json(await job.artifacts.read(site.website))
    whole = Report(
        url=site.order.url, website=website, prompts=formed.prompts, model_analysis=analysis
    )
    name = site.facts.business_name
    return RunResult(
        site=site.site,
        business_name=name.value if name else None,
        score=analysis.score.value if analysis.score else None,
        model_analysis=analysis.state,
        pages=sum(page.outcome == "read" for page in website.pages),
        report=await saved(job, whole),
    )


async def saved(job: Job, report: Report) -> Artifact:
    text = await asyncio.to_thread(report.model_dump_json, by_alias=True)
    return await job.artifacts.save("report.json", text.encode(), media_type=JSON)
