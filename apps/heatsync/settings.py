"""Settings of HeatSync. This is its only module that reads the environment."""

from functools import cached_property
from typing import Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from batchmill.config import (
    Bytes,
    Count,
    CountOrZero,
    EnvironmentSettings,
    NotifySettings,
    Parts,
    Url,
    variables,
)

MEGABYTE = 1_048_576


class AiSettings(EnvironmentSettings):
    """The OpenAI-compatible endpoint and its model."""

    model_config = SettingsConfigDict(alias_generator=variables("OPENAI_"))

    base_url: Url = "https://api.openai.com/v1"
    api_key: str | None = Field(default=None, repr=False)
    model: str = "gpt-4o-mini"
    output: Literal["json_schema", "json_object", "text"] = "json_schema"


class HeatSyncSettings(EnvironmentSettings):
    """Limits of the application.

    `total`, `per_visitor` and `per_batch` limit how many sheets are worked on at once, over all
    stages: in total, for one visitor, and for one batch. `allowed` lists addresses that may be
    fetched although they are not public.
    """

    max_pdfs: Count = Field(default=15, validation_alias="MAX_PDFS_PER_BATCH")
    total: Count = Field(default=10, validation_alias="MAX_CONCURRENT_AI_CALLS")
    per_visitor: Count = Field(default=3, validation_alias="CONCURRENT_JOBS_PER_VISITOR")
    per_batch: Count = Field(default=3, validation_alias="CONCURRENT_JOBS_PER_BATCH")
    max_pdf_bytes: Bytes = Field(default=50 * MEGABYTE, validation_alias="MAX_PDF_BYTES")
    allowed: Parts = Field(default=(), validation_alias="HEATSYNC_ALLOWED")

    @cached_property
    def ai(self) -> AiSettings | None:
        """None without a key. Sheets are then read by their layout."""
        settings = AiSettings()
        return settings if settings.api_key else None


class MailSettings(NotifySettings):
    """Lower limits than by default, because anyone can request mails here."""

    mails_per_address: CountOrZero = 5
    mails_per_tenant: CountOrZero = 20
