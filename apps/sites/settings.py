"""Settings of the application. The providers have a module of their own."""

from typing import Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from apps.sites.crawl import CrawlLimits
from batchmill.config import Count, EnvironmentSettings, Parts, Seconds, variables

Pace = Literal["fast", "original"]


class SitesSettings(EnvironmentSettings):
    """`pool` is the size of each pool, over all servers; `slots` bounds how many jobs of a phase
    one server runs, so a pool can be enlarged up to that without a restart. `allowed` are addresses
    that are not public and may be analysed. `contact` is shown to the owners of websites.
    `original` is the pace of the system that this application is modelled on. A page that takes
    longer than `page_seconds` is left out. Runs are kept for `keep_days`, so that they can be
    compared with those of earlier months. After `lease_seconds`, the jobs of a killed server are
    taken over; None means what the pace says."""

    model_config = SettingsConfigDict(alias_generator=variables("SITES_"))

    pace: Pace = Field(default="fast", description="fast or original")
    pool: Count = 10
    slots: Count = 20
    max_pages: Count = 30
    page_seconds: Seconds = 15
    max_urls: Count = 100
    allowed: Parts = ()
    contact: str | None = None
    keep_days: Count = 400
    lease_seconds: Seconds | None = None
    retry_seconds: Seconds = 5

    @property
    def crawl(self) -> CrawlLimits:
        return CrawlLimits(pages=self.max_pages, page_seconds=self.page_seconds)
