"""Settings from the environment and from code, and the messages for invalid values."""

from pathlib import Path
from typing import Any

import pytest

from apps.heatsync.settings import HeatSyncSettings, MailSettings
from batchmill import ConfigurationError, Mill
from batchmill.config import NotifySettings, ServiceSettings, Settings, app_reference

CANARY = "hunter2"
DSN = f"postgresql://me:{CANARY}@nowhere/x"


@pytest.mark.parametrize("text", ["true", "True", "1", "yes", "on"])
def test_a_flag_is_on(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHMILL_REQUIRE_KEY", text)
    assert ServiceSettings.read().require_key is True


@pytest.mark.parametrize("text", ["false", "False", "0", "no", "off", ""])
def test_a_flag_is_off(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHMILL_REQUIRE_KEY", text)
    assert ServiceSettings.read().require_key is False


def test_seconds_may_have_a_fraction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHMILL_KEEP_ALIVE", "7.5")
    assert ServiceSettings.read().keep_alive == 7.5


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("BATCHMILL_REQUIRE_KEY", "maybe", "true or false"),
        ("BATCHMILL_MAX_BODY", "lots", "a whole number of bytes, 1 or more"),
        ("BATCHMILL_MAX_BODY", "1.5", "a whole number of bytes, 1 or more"),
        ("BATCHMILL_MAX_BODY", "0", "a whole number of bytes, 1 or more"),
        ("BATCHMILL_MAX_PARTS", "-1", "a whole number from 1 to 2147483647"),
        ("BATCHMILL_STREAMS_PER_TENANT", "2147483648", "a whole number from 0 to 2147483647"),
        ("BATCHMILL_PATIENCE", "soon", "a number of seconds from 0.001 to 31536000"),
        ("BATCHMILL_PATIENCE", "nan", "a number of seconds from 0.001 to 31536000"),
        ("BATCHMILL_PATIENCE", "inf", "a number of seconds from 0.001 to 31536000"),
        ("BATCHMILL_STATEMENT_TIMEOUT", "0", "a number of seconds from 0.001 to 2147483"),
    ],
)
def test_an_invalid_value_is_refused_with_the_valid_values(
    name: str, text: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigurationError) as refused:
        ServiceSettings.read()
    assert str(refused.value) == f'{name} is "{text}". Set it to {wanted}.'


def test_the_message_names_every_invalid_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHMILL_KEEP_ALIVE", "soon")
    monkeypatch.setenv("BATCHMILL_MAX_PARTS", "few")
    with pytest.raises(ConfigurationError, match=r'MAX_PARTS is "few"\. .*KEEP_ALIVE is "soon"\. '):
        ServiceSettings.read()


def test_an_unknown_pooler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHMILL_POOLER", "session")
    with pytest.raises(ConfigurationError) as refused:
        Mill(DSN)
    expected = 'BATCHMILL_POOLER is "session". Set it to auto, none or transaction.'
    assert str(refused.value) == expected


def test_an_invalid_value_in_code_is_named_by_its_field() -> None:
    with pytest.raises(ConfigurationError, match=r'^max_parts is "0". Set it to a whole number'):
        ServiceSettings(max_parts=0)


def test_a_setting_that_does_not_exist_is_refused() -> None:
    unknown: dict[str, Any] = {"max_bdy": 1}
    with pytest.raises(ConfigurationError, match=r"^ServiceSettings has no setting max_bdy\.$"):
        ServiceSettings(**unknown)


def test_a_secret_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: dict[str, Any] = {"smtp_url": [CANARY]}
    with pytest.raises(ConfigurationError, match="^smtp_url is not valid") as refused:
        NotifySettings(**wrong)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    settings = [Settings(dsn=DSN), NotifySettings(smtp_url=CANARY), HeatSyncSettings().ai]
    assert CANARY not in str(refused.value) + repr(settings)


def test_code_overrides_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://other/x")
    monkeypatch.setenv("BATCHMILL_HOME", "/other")
    monkeypatch.setenv("BATCHMILL_MAX_PARTS", "7")
    settings = Settings.read(DSN, "~/mine")
    assert (settings.dsn, settings.home) == (DSN, Path("~/mine").expanduser())
    assert Settings.read(None, "").home == Path("/other")
    assert ServiceSettings(max_parts=8).max_parts == 8
    assert ServiceSettings().max_parts == 7


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "BATCHMILL_HOME", "BATCHMILL_POOLER", "BATCHMILL_APP"):
        monkeypatch.setenv(name, "")
    settings = Settings.read()
    assert (settings.dsn, settings.home, settings.pooler) == (None, None, "auto")
    assert app_reference() is None


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHMILL_ALLOWED_ADDRESSES", "10.2.0.0/16, 127.0.0.1:8123,")
    assert NotifySettings.read().allowed == ("10.2.0.0/16", "127.0.0.1:8123")


def test_the_trailing_slash_of_the_public_url_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHMILL_PUBLIC_URL", "https://mill.example/")
    assert ServiceSettings.read().public_url == "https://mill.example"
    assert NotifySettings.read().public_url == "https://mill.example"


def test_a_field_is_read_only_from_its_own_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BATCHMILL_DSN", "dsn", "DSN", "database_url"):
        monkeypatch.setenv(name, DSN)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert Settings.read().dsn is None


def test_a_mill_on_the_same_database_has_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request to the service creates a mill, and reading the environment takes time."""
    mill = Mill(DSN)
    assert mill.on().settings is mill.settings
    other = mill.on("postgresql://other/x").settings
    assert other == mill.settings.model_copy(update={"dsn": "postgresql://other/x"})


def test_heatsync_has_lower_mail_limits_unless_the_environment_sets_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BATCHMILL_MAILS_PER_TENANT", "30")
    settings = MailSettings.read()
    assert (settings.mails_per_address, settings.mails_per_tenant) == (5, 30)


def test_heatsync_has_no_ai_settings_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert HeatSyncSettings.read().ai is None
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/")
    ai = HeatSyncSettings.read().ai
    assert ai is not None
    assert (ai.api_key, ai.base_url, ai.model) == (CANARY, "http://127.0.0.1:1/v1", "gpt-4o-mini")


def test_heatsync_names_its_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_PDFS_PER_BATCH", "0")
    with pytest.raises(ConfigurationError, match='^MAX_PDFS_PER_BATCH is "0". Set it to a whole'):
        HeatSyncSettings.read()
