"""`SITES_PROVIDERS`."""

import json
from decimal import Decimal
from typing import Any

import pytest

from apps.sites.providers import Provider, read_providers
from apps.sites.providers.configuration import SitesProviderSettings
from apps.sites.providers.provider import Prices
from batchmill import ConfigurationError, Rate

SECRET = "sk-very-secret"
SMALLEST = {"name": "openai", "baseUrl": "https://api.example/v1", "model": "small"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SITES_PROVIDERS", raising=False)
    monkeypatch.setenv("OPENAI_KEY", SECRET)


def read(monkeypatch: pytest.MonkeyPatch, *providers: Any) -> tuple[Provider, ...]:
    monkeypatch.setenv("SITES_PROVIDERS", json.dumps(providers))
    return read_providers()


def problem(monkeypatch: pytest.MonkeyPatch, value: str) -> str:
    monkeypatch.setenv("SITES_PROVIDERS", value)
    with pytest.raises(ConfigurationError) as refused:
        read_providers()
    assert SECRET not in f"{refused.value!r} {refused.value.__cause__!r}"
    return str(refused.value)


@pytest.mark.parametrize("value", [None, "", "[]"])
def test_without_providers_none_is_configured(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv("SITES_PROVIDERS", value)
    assert read_providers() == ()


def test_all_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = read(
        monkeypatch,
        SMALLEST
        | {"keyVariable": "OPENAI_KEY", "slots": 3, "rate": {"starts": 60, "period": 60}}
        | {"inputPrice": 0.15, "outputPrice": "0.6", "timeout": 30}
        | {"options": {"temperature": 0}},
    )
    assert (found.name, found.model, found.limit) == ("openai", "small", "provider:openai")
    assert (found.slots, found.rate) == (3, Rate(60, 60))
    assert found.prices == Prices(Decimal("0.15"), Decimal("0.6"))


def test_tokens_cost_what_a_million_costs() -> None:
    prices = Prices(Decimal("0.15"), Decimal("0.6"))
    assert prices.cost("prompt_tokens", 1_000_000) == Decimal("0.15")
    assert prices.cost("completion_tokens", 10) == Decimal("0.000006")


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = read(monkeypatch, SMALLEST)
    assert (found.slots, found.rate, found.prices) == (5, None, None)


def test_the_key_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = read(monkeypatch, SMALLEST | {"keyVariable": "OPENAI_KEY"})
    assert SECRET not in f"{found!r} {found} {found.client!r} {SitesProviderSettings.read()!r}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slots": 0}, "Provider 2 (openai), slots: Input should be greater than or equal to 1."),
        ({"slots": "many"}, "Provider 2 (openai), slots: "),
        ({"rate": {"starts": 0}}, "Provider 2 (openai), rate, starts: "),
        ({"rate": "60/60"}, "Provider 2 (openai), rate: "),
        ({"baseUrl": "ftp://x"}, "Provider 2 (openai), baseUrl: use an http or https address"),
        ({"baseUrl": f"https://a:{SECRET}@x.example"}, "Provider 2 (openai), baseUrl: use an http"),
        ({"model": ""}, "Provider 2 (openai), model: "),
        ({"keyVariable": SECRET}, "Provider 2 (openai), keyVariable: give the name of an"),
        ({"key": SECRET}, "Provider 2 (openai), key: Extra inputs are not permitted."),
        ({"inputPrice": 1}, "Provider 2 (openai): give both inputPrice and outputPrice"),
        ({"inputPrice": -1, "outputPrice": 1}, "Provider 2 (openai), inputPrice: "),
        ({"timeout": 0}, "Provider 2 (openai), timeout: "),
        ({"name": "Open AI"}, "Provider 2, name: use up to 40 lowercase letters"),
        ({"name": 7}, "Provider 2 (7), name: "),
    ],
)
def test_a_message_names_the_provider_and_the_field(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], message: str
) -> None:
    given = [SMALLEST | {"name": "local"}, SMALLEST | change]
    found = problem(monkeypatch, json.dumps(given))
    assert found.startswith(f"SITES_PROVIDERS is not valid. {message}")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (f"[{SECRET}", "It is not JSON. Set it to a JSON list of providers."),
        ("{}", "Set it to a JSON list of providers."),
        ("7", "Set it to a JSON list of providers."),
        ('["openai"]', "Provider 1: "),
        ("[{}]", "Provider 1, name: Field required; Provider 1, baseUrl: Field required; "),
        (json.dumps([SMALLEST, SMALLEST]), "Two providers have the name openai."),
        (
            json.dumps([SMALLEST | {"name": f"p{n}"} for n in range(9)]),
            "9 providers are given. Give up to 8.",
        ),
    ],
)
def test_a_value_that_is_no_list_of_providers(
    monkeypatch: pytest.MonkeyPatch, value: str, message: str
) -> None:
    found = problem(monkeypatch, value)
    assert found.startswith(f"SITES_PROVIDERS is not valid. {message}")


@pytest.mark.parametrize("value", ["", "  "])
def test_a_key_that_is_not_set(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("OPENAI_KEY", value)
    found = problem(monkeypatch, json.dumps([SMALLEST | {"keyVariable": "OPENAI_KEY"}]))
    assert "openai has its key in OPENAI_KEY, which is not set." in found


def test_a_key_that_cannot_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_KEY", f"{SECRET}é")
    found = problem(monkeypatch, json.dumps([SMALLEST | {"keyVariable": "OPENAI_KEY"}]))
    assert "provider openai: The API key of a model must consist of printable ASCII" in found
