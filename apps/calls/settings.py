"""Settings of the application. This is its only module that reads the environment."""

import os
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from apps.calls.audio import LONGEST
from apps.calls.models import ProviderName
from batchmill.config import Bytes, Count, CountOrZero, EnvironmentSettings, Url, variables

MEGABYTE = 1_048_576
OPENAI = "https://api.openai.com/v1"


class LocalSettings(EnvironmentSettings):
    """`model` is the directory of a CTranslate2 Whisper model; None means the packaged one.
    `concurrency` limits the operations that run at once, on all workers together. 0 means that each
    core of this machine has one thread of an operation."""

    model_config = SettingsConfigDict(alias_generator=variables("CALLS_LOCAL_"))

    model: Path | None = None
    threads: Count = 1
    concurrency: CountOrZero = 0

    @cached_property
    def operations(self) -> int:
        return self.concurrency or max(1, (os.cpu_count() or 1) // self.threads)


class SpeechKitSettings(EnvironmentSettings):
    """`base_url` starts operations, and `operations_url` is where they are looked at. A folder is
    needed only for keys that are not limited to one folder."""

    model_config = SettingsConfigDict(alias_generator=variables("SPEECHKIT_"))

    api_key: str | None = Field(default=None, repr=False)
    folder_id: str | None = None
    base_url: Url = "https://transcribe.api.cloud.yandex.net"
    operations_url: Url = "https://operation.api.cloud.yandex.net"
    model: str = "general"
    poll_interval_ms: Count = 10_000


class TranscriptionSettings(EnvironmentSettings):
    """An OpenAI-compatible endpoint. With a key and no URL, it is OpenAI's own. `max_bytes` is the
    largest file that it accepts. `concurrency` limits the requests that are sent at once, by all
    workers together."""

    model_config = SettingsConfigDict(alias_generator=variables("CALLS_TRANSCRIPTION_"))

    url: Url | None = None
    key: str | None = Field(default=None, repr=False)
    model: str = "whisper-1"
    max_bytes: Bytes = 25 * MEGABYTE
    concurrency: Count = 4

    @property
    def base_url(self) -> str | None:
        """None if the endpoint is not configured."""
        return self.url or (OPENAI if self.key else None)


class ModelSettings(EnvironmentSettings):
    """The OpenAI-compatible endpoint of the model that writes summaries. With a key and no URL, it
    is OpenAI's own. It has variables of its own, so that a key that is in the environment for other
    programs does not send transcripts to a service."""

    model_config = SettingsConfigDict(alias_generator=variables("CALLS_MODEL_"))

    url: Url | None = None
    key: str | None = Field(default=None, repr=False)
    name: str = "gpt-4o-mini"
    output: Literal["json_schema", "json_object", "text"] = "json_schema"

    @property
    def is_configured(self) -> bool:
        return bool(self.url or self.key)

    @property
    def base_url(self) -> str:
        return self.url or OPENAI


class CallsSettings(EnvironmentSettings):
    """`provider` and `language` are the defaults of an upload. `conversions` and `starts` limit how
    many calls are converted, and sent to a provider, at once; 0 conversions means one for each
    core. `max_seconds` and `max_bytes` limit a recording, and `max_files` those of one upload.
    `retry_seconds` is the delay before the first retry of a stage; each further one is twice as
    long. `concurrency` is the number of jobs that a server runs at once; 0 means enough for all
    operations of this machine and 20 stages. After `lease_seconds`, the jobs of a killed server are
    taken over. A server that is asked to stop lets its jobs run for `grace_seconds`."""

    model_config = SettingsConfigDict(alias_generator=variables("CALLS_"))

    provider: ProviderName = "local"
    language: str = "en"
    conversions: CountOrZero = 0
    starts: Count = 10
    max_seconds: Count = LONGEST
    max_bytes: Bytes = 500 * MEGABYTE
    max_files: Count = 50
    retry_seconds: Count = 30
    concurrency: CountOrZero = 0
    lease_seconds: Count = 10
    grace_seconds: CountOrZero = 30

    @property
    def converting(self) -> int:
        return self.conversions or os.cpu_count() or 1

    @cached_property
    def model(self) -> ModelSettings | None:
        """None if no endpoint is configured. Summaries are then taken from the transcript."""
        settings = ModelSettings.read()
        return settings if settings.is_configured else None
