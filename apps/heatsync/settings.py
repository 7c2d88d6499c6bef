"""Settings of HeatSync. This is its only module that reads the environment."""

from functools import cached_property

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
    """Where an OpenAI-compatible model is reached."""

    model_config = SettingsConfigDict(alias_generator=variables("OPENAI_"))

    base_url: Url = "https://api.openai.com/v1"
    api_key: str | None = Field(default=None, repr=False)
    model: str = "gpt-4o-mini"


class HeatSyncSettings(EnvironmentSettings):
    """`extractions` may run at once in all, `per_visitor` of one visitor, `per_batch` of one batch.
    `allowed` are addresses that may be fetched although they are not public."""

    max_pdfs: Count = Field(default=15, validation_alias="MAX_PDFS_PER_BATCH")
    extractions: Count = Field(default=10, validation_alias="MAX_CONCURRENT_AI_CALLS")
    per_visitor: Count = Field(default=3, validation_alias="CONCURRENT_JOBS_PER_VISITOR")
    per_batch: Count = Field(default=3, validation_alias="CONCURRENT_JOBS_PER_BATCH")
    max_pdf_bytes: Bytes = Field(default=50 * MEGABYTE, validation_alias="MAX_PDF_BYTES")
    allowed: Parts = Field(default=(), validation_alias="HEATSYNC_ALLOWED")

    @cached_property
    def ai(self) -> AiSettings | None:
        """None without a key: sheets are then read by their layout."""
        found = AiSettings()
        return found if found.api_key else None


class MailSettings(NotifySettings):
    """Anyone can ask for a mail here, so fewer are sent."""

    mails_per_address: CountOrZero = 5
    mails_per_tenant: CountOrZero = 20
