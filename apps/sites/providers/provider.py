"""A model that is asked, and what its answers cost."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Self

from apps.sites.providers.configuration import ProviderSettings, SitesProviderSettings
from batchmill import ConfigurationError, InvalidInput, Mill, ModelClient, Rate

MILLION = Decimal(1_000_000)
# An answer is a few kilobytes. Some endpoints add how the model came to it.
LARGEST_RESPONSE = 1_048_576


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens."""

    prompt_tokens: Decimal
    completion_tokens: Decimal

    def cost(self, name: str, count: int) -> Decimal:
        return count * getattr(self, name) / MILLION


@dataclass(frozen=True, slots=True)
class Provider:
    """`client` has the key, so it is not shown."""

    name: str
    model: str
    client: ModelClient = field(repr=False)
    slots: int
    rate: Rate | None = None
    prices: Prices | None = None

    @property
    def limit(self) -> str:
        return f"provider:{self.name}"

    @classmethod
    def from_settings(cls, settings: ProviderSettings) -> Self:
        return cls(
            name=settings.name,
            model=settings.model,
            client=_client(settings),
            slots=settings.slots,
            rate=settings.limit_rate,
            prices=_prices(settings),
        )


def read_providers() -> tuple[Provider, ...]:
    """The providers of `SITES_PROVIDERS`. Raises ConfigurationError."""
    return tuple(map(Provider.from_settings, SitesProviderSettings.read().providers))


def declare_limits(mill: Mill, providers: Iterable[Provider]) -> None:
    """Call it beside the tasks, before a worker starts."""
    for provider in providers:
        mill.limit(provider.limit, slots=provider.slots, rate=provider.rate)


def _client(settings: ProviderSettings) -> ModelClient:
    try:
        return ModelClient(
            settings.base_url,
            settings.model,
            api_key=settings.read_key(),
            options=settings.options,
            read=settings.timeout,
            total=settings.timeout,
            size=LARGEST_RESPONSE,
        )
    except InvalidInput as error:
        raise ConfigurationError(f"SITES_PROVIDERS: provider {settings.name}: {error}") from None


def _prices(settings: ProviderSettings) -> Prices | None:
    if settings.input_price is None or settings.output_price is None:
        return None
    return Prices(settings.input_price, settings.output_price)
