"""Settings. This is the only place that reads the environment."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from batchmill.errors import ConfigurationError

Pooler = Literal["auto", "none", "transaction"]
POOLERS: tuple[Pooler, ...] = ("auto", "none", "transaction")


@dataclass(frozen=True, slots=True)
class Settings:
    """`dsn` None means the embedded server, whose data lie in `home`. `artifacts` is the path or
    the URL of the artifact store; None means a directory in `home`."""

    dsn: str | None
    home: Path | None
    pooler: Pooler
    artifacts: str | None = None

    @classmethod
    def read(cls, dsn: str | None = None, home: str | Path | None = None) -> "Settings":
        """What is given, else what the environment says."""
        where = home or os.environ.get("BATCHMILL_HOME")
        return cls(
            dsn=dsn or os.environ.get("DATABASE_URL") or None,
            home=Path(where).expanduser() if where else None,
            pooler=_pooler(os.environ.get("BATCHMILL_POOLER", "auto")),
            artifacts=os.environ.get("BATCHMILL_ARTIFACTS") or None,
        )


MEGABYTE = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """What the service takes, and whom it believes. Sizes are in bytes.

    With `require_key`, nobody is served without one; otherwise, while no key was made, this machine
    is: behind a proxy on it that tells nothing of its clients, so is everyone.
    `trusted_proxies` are the networks whose word on the client's address counts; `public_url` is
    where clients reach the service, for links in mails and webhooks; `cors_origins` are the pages
    that may call it from a browser, none unless given. A stream says something every `keep_alive`
    seconds, and a client that reads nothing for `patience` seconds is dropped. A statement that a
    request makes is ended after `statement_timeout` seconds; one that changes a whole batch, after
    `long_statement_timeout`.

    An address may try `wrong_keys_per_minute`; then it has to wait. There are at most so many
    `connections`, and so many per address that is no trusted proxy. The headers of a request have
    `header_seconds` to come. Of a body, `body_rate` bytes a second have to come in every
    `body_seconds`. A connection without a request is closed after `idle_seconds`.
    """

    require_key: bool = False
    trusted_proxies: tuple[str, ...] = ()
    public_url: str | None = None
    cors_origins: tuple[str, ...] = ()
    max_body: int = 16 * MEGABYTE
    max_file: int = 5_120 * MEGABYTE
    max_request: int = 10_240 * MEGABYTE
    max_parts: int = 1_000
    link_seconds: float = 3_600
    keep_alive: float = 15
    patience: float = 30
    streams_per_process: int = 10_000
    streams_per_tenant: int = 5_000
    wrong_keys_per_minute: int = 30
    connections: int = 12_000
    connections_per_address: int = 500
    header_seconds: float = 10
    body_seconds: float = 20
    body_rate: int = 1_000
    idle_seconds: float = 30
    downloads_per_process: int = 200
    downloads_per_tenant: int = 50
    statement_timeout: float = 10
    long_statement_timeout: float = 60

    @classmethod
    def read(cls) -> "ServiceSettings":
        """From BATCHMILL_TRUSTED_PROXIES, BATCHMILL_PUBLIC_URL and so on: the names above."""
        given = {name: os.environ.get(f"BATCHMILL_{name.upper()}") for name in cls.__slots__}
        return cls(**{name: _setting(name, text) for name, text in given.items() if text})


def _count(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if text and not text.isdecimal():
        raise ConfigurationError(f'{name} is a whole number, not "{text}".')
    return int(text) if text else default


def _setting(name: str, text: str) -> Any:
    if name in ("trusted_proxies", "cors_origins"):
        return _parts(text)
    if name == "public_url":
        return text.rstrip("/")
    try:
        return int(text)
    except ValueError:
        raise ConfigurationError(
            f'BATCHMILL_{name.upper()} is a whole number, not "{text}".'
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """How those are told who wait for a batch. Without `smtp_url` and `mail_from` no mail is sent.

    `public_url` is where people find their batches, for links; `allowed` are the addresses that may
    be called although they are not public. Mails are bounded in any hour: `mails_per_address` to
    one address, whoever asks for them, and `mails_per_tenant` for one tenant.
    """

    smtp_url: str | None = field(default=None, repr=False)
    mail_from: str | None = None
    public_url: str | None = None
    allowed: tuple[str, ...] = ()
    mails_per_address: int = 20
    mails_per_tenant: int = 500

    @classmethod
    def read(cls, *, mails_per_address: int = 20, mails_per_tenant: int = 500) -> "NotifySettings":
        return cls(
            smtp_url=os.environ.get("BATCHMILL_SMTP_URL") or None,
            mail_from=os.environ.get("BATCHMILL_MAIL_FROM") or None,
            public_url=os.environ.get("BATCHMILL_PUBLIC_URL", "").rstrip("/") or None,
            allowed=_parts(os.environ.get("BATCHMILL_ALLOWED_ADDRESSES", "")),
            mails_per_address=_count("BATCHMILL_MAILS_PER_ADDRESS", mails_per_address),
            mails_per_tenant=_count("BATCHMILL_MAILS_PER_TENANT", mails_per_tenant),
        )


def app_reference() -> str | None:
    """Where the command line finds the mill: `module:name`."""
    return os.environ.get("BATCHMILL_APP")


def _parts(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _pooler(value: str) -> Pooler:
    for known in POOLERS:
        if value == known:
            return known
    raise ConfigurationError(f'BATCHMILL_POOLER is one of {", ".join(POOLERS)}, not "{value}".')
