"""Settings of the application. This is its only module that reads the environment."""

from datetime import timedelta

from pydantic_settings import SettingsConfigDict

from batchmill.config import Bytes, Count, EnvironmentSettings, variables

MEGABYTE = 1_000_000

# How long the file of an export is kept, and how long the application knows that there was one.
KEPT = timedelta(days=7)
REMEMBERED = timedelta(days=30)
# The engine keeps a batch this long, counted from its submit. Reuse cannot keep an export longer.
BATCH_KEPT = timedelta(days=30)


class ResumesSettings(EnvironmentSettings):
    """`concurrency` limits the exports that run at once, of all users and on all servers. A user
    may store `storage_bytes` and begin `operations_per_day`, unless the operator has set another
    quota, and may have `max_documents`. `retry_seconds` is the delay before the first retry; each
    further one is twice as long. After `lease_seconds`, the jobs of a killed server are taken
    over."""

    model_config = SettingsConfigDict(alias_generator=variables("RESUMES_"))

    concurrency: Count = 3
    storage_bytes: Bytes = 100 * MEGABYTE
    operations_per_day: Count = 100
    max_documents: Count = 1_000
    retry_seconds: Count = 60
    lease_seconds: Count = 10
