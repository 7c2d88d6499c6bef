"""`SITES_PROVIDERS`: the models that are asked. This module reads the environment."""

import json
import os
import re
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import SettingsConfigDict

from apps.sites.models import Model
from batchmill import ConfigurationError, InvalidInput, ModelClient, Rate
from batchmill.config import EnvironmentSettings, variables

# With it, all answers of a run fit into the checkpoints of its job.
MOST_PROVIDERS = 8
LONGEST_TIMEOUT = 600

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
# Only capitals: a key that was pasted here by mistake is refused, and no message shows it.
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,99}")


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("use up to 40 lowercase letters, digits and hyphens")
    return name


def _checked_variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(
            "give the name of an environment variable, in capital letters, not the key itself"
        )
    return name


def _checked_url(url: str) -> str:
    try:
        ModelClient(url, "model")
    except (InvalidInput, ValueError):
        raise ValueError("use an http or https address without a user name") from None
    return url


class RateSettings(Model):
    """At most `starts` requests in any window of `period` seconds."""

    model_config = ConfigDict(extra="forbid")

    starts: int = Field(ge=1, le=1_000_000)
    period: float = Field(default=1.0, gt=0, le=86_400)


class ProviderSettings(Model):
    """One endpoint and one model. `key_variable` names the environment variable that has the key.
    `slots` are the requests that all workers together send at once. `timeout` limits the seconds of
    a request. Prices are in US dollars for a million tokens. `options` are more fields of every
    request, such as `{"max_tokens": 1000}`."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, AfterValidator(_checked_name)]
    base_url: Annotated[str, AfterValidator(_checked_url)]
    model: str = Field(min_length=1, max_length=200)
    key_variable: Annotated[str, AfterValidator(_checked_variable)] | None = None
    slots: int = Field(default=5, ge=1, le=1_000)
    rate: RateSettings | None = None
    timeout: float = Field(default=120.0, gt=0, le=LONGEST_TIMEOUT)
    input_price: Decimal | None = Field(default=None, ge=0, le=10_000)
    output_price: Decimal | None = Field(default=None, ge=0, le=10_000)
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _require_both_prices(self) -> Self:
        if (self.input_price is None) != (self.output_price is None):
            raise ValueError("give both inputPrice and outputPrice, or neither")
        return self

    @property
    def limit_rate(self) -> Rate | None:
        return Rate(self.rate.starts, self.rate.period) if self.rate else None

    def read_key(self) -> str | None:
        """The key from the environment. None if the provider needs none."""
        if self.key_variable is None:
            return None
        key = os.environ.get(self.key_variable, "").strip()
        if not key:
            raise ConfigurationError(
                f"SITES_PROVIDERS: the provider {self.name} has its key in {self.key_variable}, "
                "which is not set. Set this environment variable, or remove the provider."
            )
        return key


def _read(given: Any) -> Any:
    """Validates here, because a message about the whole setting would not name the field."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            raise _problem("It is not JSON. Set it to a JSON list of providers") from None
    try:
        providers = _PROVIDERS.validate_python(given)
    except ValidationError as error:
        raise _problem("; ".join(_explained(it, given) for it in error.errors())) from None
    _require_few_and_different(providers)
    return tuple(providers)


def _require_few_and_different(providers: list[ProviderSettings]) -> None:
    names = [provider.name for provider in providers]
    if len(names) > MOST_PROVIDERS:
        raise _problem(f"{len(names)} providers are given. Give up to {MOST_PROVIDERS}")
    for index, name in enumerate(names):
        if name in names[:index]:
            raise _problem(f"Two providers have the name {name}. Give each its own name")


def _explained(error: Any, given: Any) -> str:
    """Shows no value, because it may be a key."""
    message = error["msg"].removeprefix("Value error, ")
    if not error["loc"]:
        return "Set it to a JSON list of providers"
    index, *path = error["loc"]
    place = f"Provider {index + 1}"
    if isinstance(given[index], dict) and _NAME.fullmatch(str(given[index].get("name", ""))):
        place += f" ({given[index]['name']})"
    return ", ".join([place, *(str(step) for step in path)]) + f": {message}"


def _problem(text: str) -> PydanticCustomError:
    return PydanticCustomError("providers", "{text}", {"text": text})


_PROVIDERS = TypeAdapter(list[ProviderSettings])


class SitesProviderSettings(EnvironmentSettings):
    model_config = SettingsConfigDict(alias_generator=variables("SITES_"))

    providers: Annotated[tuple[ProviderSettings, ...], BeforeValidator(_read)] = Field(
        default=(), repr=False
    )
