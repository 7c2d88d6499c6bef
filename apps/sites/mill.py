"""The mill of this application, its settings, its providers, and how it reads websites. Modules
that declare tasks import them here."""

from dataclasses import replace

from apps.sites.pace import PACES
from apps.sites.providers import Provider, declare_limits, read_providers
from apps.sites.settings import SitesSettings
from apps.sites.tables import SITES
from batchmill import Addresses, Fetcher, FetchLimits, Mill, Rate

# Postgres grants requests exactly at a provider's rate. The provider counts them when they arrive,
# and on a busy machine some arrive later than others. So each window is longer by this time.
SPARE_SECONDS = 0.5


def spared(provider: Provider) -> Provider:
    if provider.rate is None:
        return provider
    rate = Rate(provider.rate.starts, provider.rate.period + SPARE_SECONDS)
    return replace(provider, rate=rate)


settings = SitesSettings.read()
pace = PACES[settings.pace]
providers = read_providers()
mill = Mill(schemas=[SITES])
declare_limits(mill, map(spared, providers))
fetcher = Fetcher(
    addresses=Addresses(allow=settings.allowed),
    # The crawler itself bounds the sizes of pages, sitemaps and robots.txt.
    limits=FetchLimits(total=settings.crawl.page_seconds),
    contact=settings.contact,
)
