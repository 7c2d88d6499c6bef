"""Settings of HeatSync. This is the only place of it that reads the environment."""

import os
from dataclasses import dataclass, field

from batchmill import ConfigurationError

MEGABYTE = 1_048_576


@dataclass(frozen=True, kw_only=True)
class AiSettings:
    """Where an OpenAI-compatible model is reached."""

    base_url: str
    api_key: str = field(repr=False)
    model: str

    @classmethod
    def read(cls) -> "AiSettings | None":
        """None without a key: sheets are then read by their layout."""
        if not (key := os.environ.get("OPENAI_API_KEY")):
            return None
        return cls(
            base_url=os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/"),
            api_key=key,
            model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
        )


@dataclass(frozen=True, kw_only=True)
class HeatSyncSettings:
    """`extractions` may run at once in all, `per_visitor` of one visitor, `per_batch` of one batch.
    `allowed` are addresses that may be fetched although they are not public."""

    max_pdfs: int = 15
    extractions: int = 10
    per_visitor: int = 3
    per_batch: int = 3
    max_pdf_bytes: int = 50 * MEGABYTE
    allowed: tuple[str, ...] = ()
    ai: AiSettings | None = None

    @classmethod
    def read(cls) -> "HeatSyncSettings":
        return cls(
            max_pdfs=_number("MAX_PDFS_PER_BATCH", cls.max_pdfs),
            extractions=_number("MAX_CONCURRENT_AI_CALLS", cls.extractions),
            per_visitor=_number("CONCURRENT_JOBS_PER_VISITOR", cls.per_visitor),
            per_batch=_number("CONCURRENT_JOBS_PER_BATCH", cls.per_batch),
            max_pdf_bytes=_number("MAX_PDF_BYTES", cls.max_pdf_bytes),
            allowed=tuple(filter(None, os.environ.get("HEATSYNC_ALLOWED", "").split(","))),
            ai=AiSettings.read(),
        )


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise ConfigurationError(f'{name} is a whole number from 1 on, not "{text}".')
    return int(text)
